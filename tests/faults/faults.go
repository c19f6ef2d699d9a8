//go:build unix

// Package faults kills programs at chosen places, for tests of what survives. A test
// binary starts itself anew as a child, which runs a script: a function registered by
// name. The child stops at every Point until the parent lets it go on, so the parent
// can kill it exactly there. What the child said with Tell before it died is known, so
// a test can compare what was promised with what is kept.
//
//	func TestMain(m *testing.M) { faults.Main(m) }
//
//	func init() { faults.Script("saver", func(args []string) error { ... }) }
//
//	out := faults.Child(t, "saver", dir).KillAt("save.renamed", 1)
//
// It knows nothing of the library. Only tests import it.
package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
)

const (
	scriptEnv = "A3S_FAULTS_SCRIPT"
	argsEnv   = "A3S_FAULTS_ARGS"
	// The child's ends of its two pipes.
	reportFD, permitFD = 3, 4
)

var scripts = map[string]func(args []string) error{}

// Script registers what a child can run. It is called from init functions.
func Script(name string, run func(args []string) error) {
	if scripts[name] != nil {
		panic("faults: script registered twice: " + name)
	}
	scripts[name] = run
}

// Main takes the place of m.Run in TestMain: in a child it runs the script and ends
// the process, with status 0 if the script returns nil, else 3.
func Main(m *testing.M) {
	name := os.Getenv(scriptEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := runScript(name); err != nil {
		fmt.Fprintf(os.Stderr, "script %s: %v\n", name, err)
		os.Exit(3)
	}
	os.Exit(0)
}

func runScript(name string) error {
	run := scripts[name]
	if run == nil {
		return fmt.Errorf("no such script")
	}
	var args []string
	if err := json.Unmarshal([]byte(os.Getenv(argsEnv)), &args); err != nil {
		return err
	}
	closeOnExec(reportFD, permitFD)
	line.report, line.permit = os.NewFile(reportFD, "report"), bufio.NewReader(os.NewFile(permitFD, "permit"))
	// Programs that the script starts are not children of this kind.
	os.Unsetenv(scriptEnv)
	os.Unsetenv(argsEnv)
	Point("start")
	return run(args)
}

// line is a child's connection to its parent.
var line struct {
	sync.Mutex
	report io.Writer
	permit *bufio.Reader
}

// Point marks a place where the parent may kill this process; it returns when the
// parent lets it go on. Outside of a child it does nothing. Points of several
// goroutines are taken one by one.
func Point(name string) {
	if line.report == nil {
		return
	}
	line.Lock()
	defer line.Unlock()
	say('P', name)
	if _, err := line.permit.ReadByte(); err != nil {
		// The parent is gone; nobody waits for the rest.
		os.Exit(4)
	}
}

// Tell reports something to the parent without waiting for it: it is known even if
// the process dies in the next instruction.
func Tell(text string) {
	if line.report == nil {
		return
	}
	line.Lock()
	defer line.Unlock()
	say('T', text)
}

// say writes one line at once; a pipe takes it whole or the process is at its end.
func say(kind byte, text string) {
	b, err := json.Marshal(text)
	if err == nil {
		_, err = line.report.Write(append(append([]byte{kind}, b...), '\n'))
	}
	if err != nil {
		os.Exit(4)
	}
}

// Outcome is what became of a child.
type Outcome struct {
	// Killed says that the child was killed rather than that it ended by itself.
	Killed bool
	// Status is the exit status of a child that ended by itself.
	Status int
	// Points lists the points it reached, the one it was killed at included.
	Points []string
	// Told lists what it told.
	Told []string
	// Output is its stdout and stderr.
	Output string
}

// Last gives the last thing the child told, or "".
func (o Outcome) Last() string {
	if len(o.Told) == 0 {
		return ""
	}
	return o.Told[len(o.Told)-1]
}

func (o Outcome) String() string {
	return fmt.Sprintf("killed %v, status %d, points %s, told %q, output:\n%s", o.Killed, o.Status, strings.Join(o.Points, " "), o.Told, o.Output)
}
