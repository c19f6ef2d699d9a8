// Command dist makes the packages of a release from the commit that is checked out, and tries
// each of them in an empty folder, as a user would. It is what ./build.sh dist runs.
//
//	dist            make and try everything; packages go to build/dist
//	dist -verify    after that make everything again elsewhere, from nothing, and compare
//	dist -versions  only check that every file names the version in VERSION
//
// Its last line is "N passed, N failed".
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	verify := flag.Bool("verify", false, "make everything a second time, from nothing, and compare")
	versions := flag.Bool("versions", false, "only check the versions")
	root := flag.String("root", ".", "the checkout")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "dist: unknown argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if *versions {
		if _, err := sameVersions(*root); err != nil {
			fmt.Fprintln(os.Stderr, "dist:", err)
			os.Exit(1)
		}
		return
	}
	t := &tally{to: os.Stderr}
	if err := dist(t, *root, *verify); err != nil {
		t.step("dist", func() error { return err })
	}
	fmt.Printf("%d passed, %d failed\n", t.passed, t.failed)
	if t.failed > 0 {
		os.Exit(1)
	}
}

// dist makes everything and tries it. What fails is counted; an error is what ends it all.
func dist(t *tally, root string, verify bool) error {
	scratch, err := os.MkdirTemp("", "a3s-dist-")
	if err != nil {
		return err
	}
	defer removeAll(scratch)
	r, err := newRelease(root, scratch)
	if err != nil {
		return err
	}
	for i, m := range makers {
		if err := t.step(m.name, func() error { return m.make(r) }); err != nil && i == 0 {
			return nil // all others need the library
		}
	}
	t.step("archives", r.checkArchives)
	t.step("sizes", func() error { return r.checkSizes(t.to) })
	for _, u := range users {
		t.step(u.name, func() error { return u.try(r) })
	}
	if verify {
		t.step("the same again, from nothing", func() error { return again(r) })
	}
	fmt.Fprintf(t.to, "packages of %s, commit %.12s, are in %s\n", r.version, r.commit, r.out)
	return nil
}

// tally counts steps and shows them.
type tally struct {
	to             io.Writer
	passed, failed int
}

// step runs f as one test.
func (t *tally) step(name string, f func() error) error {
	start := time.Now()
	err := f()
	if err != nil {
		t.failed++
		fmt.Fprintf(t.to, "FAIL  %s: %v\n", name, err)
		return err
	}
	t.passed++
	fmt.Fprintf(t.to, "ok    %s (%.1f s)\n", name, time.Since(start).Seconds())
	return nil
}

// maker makes one kind of package.
type maker struct {
	name string
	make func(*release) error
}

// The library comes first, and the sums of all the others last.
var makers = []maker{
	{"library", (*release).makeLibrary},
	{"Python wheel and source package", (*release).makePython},
	{"npm packages", (*release).makeNode},
	{"crates", (*release).makeCrates},
	{"Go module", (*release).makeModule},
	{"archive of the library", (*release).makeArchive},
	{"sums", (*release).makeSums},
}
