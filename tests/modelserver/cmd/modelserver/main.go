// Command modelserver serves the scripted model server to tests in any language.
//
//	modelserver [-addr HOST:PORT] [-loop] [SCRIPT]
//
// SCRIPT holds one JSON answer a line (modelserver.Answer); blank lines and lines that
// begin with # are skipped. The first line of the output is the base URL. The program
// ends when its standard input does, so that it never outlives the test that started it.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/a3s-lab/liba3s/tests/modelserver"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "address to listen on")
	loop := flag.Bool("loop", false, "start again after the last answer")
	flag.Parse()
	if err := run(*addr, *loop, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "modelserver:", err)
		os.Exit(1)
	}
}

func run(addr string, loop bool, args []string) error {
	var answers []modelserver.Answer
	if len(args) > 1 {
		return fmt.Errorf("one script, not %d", len(args))
	}
	if len(args) == 1 {
		var err error
		if answers, err = read(args[0]); err != nil {
			return err
		}
	}
	s, err := modelserver.Listen(addr, answers...)
	if err != nil {
		return err
	}
	defer s.Close()
	if loop {
		s.Loop()
	}
	fmt.Println(s.URL)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func read(path string) ([]modelserver.Answer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var answers []modelserver.Answer
	in := bufio.NewScanner(f)
	in.Buffer(nil, 64<<20)
	for n := 1; in.Scan(); n++ {
		line := strings.TrimSpace(in.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var a modelserver.Answer
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&a); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		answers = append(answers, a)
	}
	return answers, in.Err()
}
