package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/a3s-lab/liba3s/tools/dist/archive"
)

// checkArchives looks at every archive: order, owner, modes and times.
func (r *release) checkArchives() error {
	names, err := r.packages()
	if err != nil {
		return err
	}
	seen := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".json") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		if err := archive.Check(name, data, r.at); err != nil {
			return err
		}
		seen++
	}
	if seen == 0 {
		return fmt.Errorf("there are none in %s", r.out)
	}
	return nil
}

const megabyte = 1 << 20

// checkSizes shows the sizes beside what they may be.
func (r *release) checkSizes(to io.Writer) error {
	data, err := os.ReadFile(r.built(soname))
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	gz, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	gz.Write(data)
	gz.Close()
	type size struct {
		name      string
		got, most int
	}
	sizes := []size{{soname, len(data), 16 * megabyte}, {soname + ", gzip", packed.Len(), 6 * megabyte}}
	names, err := r.packages()
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := os.Stat(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		sizes = append(sizes, size{name, int(info.Size()), 6 * megabyte})
	}
	var wrong []string
	for _, s := range sizes {
		fmt.Fprintf(to, "      %-60s %6.2f MB of %d\n", s.name, float64(s.got)/megabyte, s.most/megabyte)
		if s.got > s.most {
			wrong = append(wrong, s.name)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("too large: %s", strings.Join(wrong, ", "))
	}
	return nil
}

// again makes everything a second time, in other folders and with no result of an earlier
// build of Go or C at hand, and compares the sums.
func again(first *release) error {
	second := *first
	second.scratch = filepath.Join(first.scratch, "again")
	second.source, second.out = filepath.Join(second.scratch, "elsewhere", "source"), filepath.Join(second.scratch, "dist")
	if err := os.MkdirAll(second.out, 0o755); err != nil {
		return err
	}
	if old, ok := os.LookupEnv("GOCACHE"); ok {
		defer os.Setenv("GOCACHE", old)
	} else {
		defer os.Unsetenv("GOCACHE")
	}
	os.Setenv("GOCACHE", filepath.Join(second.scratch, "gocache"))
	if err := second.clone(second.source); err != nil {
		return err
	}
	for _, m := range makers {
		if err := m.make(&second); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	var sums [2][]byte
	for i, r := range []*release{first, &second} {
		var err error
		if sums[i], err = os.ReadFile(filepath.Join(r.out, sumsName)); err != nil {
			return err
		}
	}
	if !bytes.Equal(sums[0], sums[1]) {
		return fmt.Errorf("the sums differ:\n%s\nand\n%s", sums[0], sums[1])
	}
	return nil
}
