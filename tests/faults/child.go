//go:build unix

package faults

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// closeOnExec keeps the pipes from the programs that the script starts, which may
// outlive it: the parent waits for their end.
func closeOnExec(fds ...int) {
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
	}
}

// limit ends a child that neither ends nor reaches its point.
const limit = 2 * time.Minute

// Process is a child that is about to be started.
type Process struct {
	t      testing.TB
	script string
	args   []string
	cmd    *exec.Cmd
	report *bufio.Reader
	permit *os.File
	output bytes.Buffer
	points []string
	told   []string
}

// Child prepares a child that runs a script. It starts with the first method that is
// called on it. Whatever it left running is killed at the end of the test.
func Child(t testing.TB, script string, args ...string) *Process {
	t.Helper()
	if scripts[script] == nil {
		t.Fatalf("no script %q is registered", script)
	}
	return &Process{t: t, script: script, args: args}
}

// KillAt kills the child at the nth time, from 1, that it reaches a point. A child
// that ends before that fails the test.
func (p *Process) KillAt(point string, nth int) Outcome {
	p.t.Helper()
	p.start()
	seen := 0
	for {
		at, ok := p.next()
		if !ok {
			out := p.end(false)
			p.t.Fatalf("the child ended before it reached %q %d times: %s", point, nth, out)
		}
		if at == point {
			seen++
		}
		if seen == nth {
			return p.end(true)
		}
		p.goOn()
	}
}

// KillAfter kills the child some time after its start, wherever it is then. It may
// have ended by itself.
func (p *Process) KillAfter(d time.Duration) Outcome {
	p.t.Helper()
	p.start()
	var timer *time.Timer
	for {
		at, ok := p.next()
		if !ok {
			return p.end(false)
		}
		if at == "start" {
			timer = time.AfterFunc(d, func() { p.cmd.Process.Kill() })
			defer timer.Stop()
		}
		p.goOn()
	}
}

// Hold lets the child run up to the nth time it reaches a point and keeps it there,
// alive, until one of the other methods is called or the test ends.
func (p *Process) Hold(point string, nth int) {
	p.t.Helper()
	p.start()
	for seen := 0; ; {
		at, ok := p.next()
		if !ok {
			p.t.Fatalf("the child ended before it reached %q %d times: %s", point, nth, p.end(false))
		}
		if at == point {
			if seen++; seen == nth {
				return
			}
		}
		p.goOn()
	}
}

// Kill kills a child that is held.
func (p *Process) Kill() Outcome { return p.end(true) }

// PID is the process id of a child that was started.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Wait lets the child run, from where it is held or from its start, to its end.
func (p *Process) Wait() Outcome {
	p.t.Helper()
	if p.cmd == nil {
		p.start()
	} else {
		p.goOn()
	}
	for {
		if _, ok := p.next(); !ok {
			return p.end(false)
		}
		p.goOn()
	}
}

func (p *Process) start() {
	p.t.Helper()
	if p.cmd != nil {
		p.t.Fatal("the child was started already")
	}
	exe, err := os.Executable()
	p.check(err)
	args, err := json.Marshal(p.args)
	p.check(err)
	reportR, reportW, err := os.Pipe()
	p.check(err)
	permitR, permitW, err := os.Pipe()
	p.check(err)
	p.cmd = exec.Command(exe)
	p.cmd.Env = append(os.Environ(), scriptEnv+"="+p.script, argsEnv+"="+string(args))
	p.cmd.ExtraFiles = []*os.File{reportW, permitR}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	// A pipe that a grandchild holds open must not keep the parent waiting.
	p.cmd.WaitDelay = 5 * time.Second
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.check(p.cmd.Start())
	reportW.Close()
	permitR.Close()
	p.report, p.permit = bufio.NewReader(reportR), permitW
	watchdog := time.AfterFunc(limit, func() { p.cmd.Process.Kill() })
	p.t.Cleanup(func() {
		watchdog.Stop()
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		p.cmd.Wait()
		reportR.Close()
		permitW.Close()
	})
}

func (p *Process) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("start the child: %v", err)
	}
}

// next waits for the next point; false if there will be none.
func (p *Process) next() (string, bool) {
	for {
		line, err := p.report.ReadBytes('\n')
		if err != nil {
			return "", false // half a line is what a kill leaves
		}
		var text string
		if json.Unmarshal(line[1:], &text) != nil {
			p.t.Fatalf("the child said %q", line)
		}
		if line[0] == 'P' {
			p.points = append(p.points, text)
			return text, true
		}
		p.told = append(p.told, text)
	}
}

// goOn lets the child leave its point; one that was killed there need not hear it.
func (p *Process) goOn() { p.permit.Write([]byte{1}) }

// end kills the child if it is to be killed, waits for it, and reads the rest of what
// it said.
func (p *Process) end(kill bool) Outcome {
	p.t.Helper()
	if kill {
		p.cmd.Process.Kill()
	}
	err := p.cmd.Wait()
	for {
		if _, ok := p.next(); !ok {
			break
		}
	}
	out := Outcome{Status: p.cmd.ProcessState.ExitCode(), Points: p.points, Told: p.told, Output: p.output.String()}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, ok := exit.Sys().(syscall.WaitStatus)
		out.Killed = ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	}
	return out
}
