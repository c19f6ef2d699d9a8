// Command bench measures libA3S against its goals and prints one table, as text and as
// Markdown into build/bench.md. It asserts nothing. What needs a process of its own
// (memory, loading, the C and Python surfaces) is measured in a child. Floor 13.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"
)

// bench is what every measure works with.
type bench struct {
	ctx  context.Context
	root string // of the checkout
	dir  string // scratch on the disk of the checkout
	fast string // scratch on tmpfs, empty if there is none

	languages []language // that are measured
	made      map[string]built
}

// measure gives some rows of the table. An error becomes a row that says why the
// measure could not run.
type measure struct {
	name string
	run  func(b *bench, t *table) error
}

var measures = []measure{
	{"call", beside("call")},
	{"deliver", beside("deliver")},
	{"wake", beside("wake")},
	{"host", beside("host")},
	{"first", first},
	{"load", loads},
	{"memory", beside("memory")},

	{"turn", turns},
	{"persist", persist},
	{"replay", replay},
	{"idle", idle},
	{"load", load},
	{"produce", produce},
	{"search", search},
	{"permission", permission},
	{"resume", resume},
	{"cycle", cycle},
}

func beside(name string) func(*bench, *table) error {
	return func(b *bench, t *table) error { return compare(b, t, name) }
}

func main() {
	var err error
	if len(os.Args) > 1 && os.Args[1] == "child" {
		err = child(os.Args[2:])
	} else {
		err = measureAll()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measureAll() error {
	root := flag.String("root", ".", "the checkout")
	only := flag.String("only", "", "measure only what matches this regular expression")
	langs := flag.String("lang", "", "compare only the languages that match this regular expression: C, Rust, Node, Python, Go")
	soak := flag.Bool("soak", false, "also what takes minutes: resume of a 1 GB journal")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: ./build.sh bench [-only REGEXP] [-lang REGEXP] [-soak]")
		flag.PrintDefaults()
	}
	flag.Parse()
	pick, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	inside, err := regexp.Compile("(?i)" + *langs)
	if err != nil {
		return err
	}
	b := &bench{}
	for _, l := range languages {
		if inside.MatchString(string(l)) {
			b.languages = append(b.languages, l)
		}
	}
	if b.root, err = filepath.Abs(*root); err != nil {
		return err
	}
	if *soak {
		resumeSizes = append(resumeSizes, resumeSize{64, 16})
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b.ctx = ctx
	if b.dir, err = os.MkdirTemp(filepath.Join(b.root, "build", "bench"), "scratch-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if isTmpfs("/dev/shm") {
		if b.fast, err = os.MkdirTemp("/dev/shm", "a3s-bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(b.fast)
	}
	t := &table{machine: machine(), began: time.Now()}
	for _, m := range measures {
		if !pick.MatchString(m.name) || ctx.Err() != nil {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %s\n", m.name)
		if err := m.run(b, t); err != nil {
			t.failed(m.name, err)
		}
	}
	fmt.Print(t.text())
	out := filepath.Join(b.root, "build", "bench.md")
	if *only != "" || *langs != "" {
		return nil // a part must not pass for the whole
	}
	if err := os.WriteFile(out, []byte(t.markdown()), 0o644); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "bench: wrote", out)
	return nil
}
