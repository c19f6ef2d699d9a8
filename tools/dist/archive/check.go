package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// Check says what in an archive depends on more than its content. It reads the headers with
// its own eyes, and trusts no other function of this package.
func Check(name string, data []byte, at time.Time) error {
	check := checkTar
	if IsZip(name) {
		check = checkZip
	}
	if err := check(data, at); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// entry checks what both kinds have; last is the name before.
func entry(name, last string, mode fs.FileMode, time, at time.Time) error {
	switch {
	case name <= last:
		return fmt.Errorf("%s comes after %s", name, last)
	case mode != 0o644 && mode != 0o755:
		return fmt.Errorf("%s has mode %o", name, mode)
	case time.Unix() != at.Unix():
		return fmt.Errorf("%s is of %s, and should be of %s", name, time.UTC(), at.UTC())
	}
	return nil
}

func checkTar(data []byte, at time.Time) error {
	gz, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if !gz.ModTime.IsZero() || gz.Name != "" {
		return fmt.Errorf("its head names a file or a time")
	}
	last := ""
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		mode := fs.FileMode(h.Mode)
		if h.Typeflag == tar.TypeSymlink && mode == 0o777 {
			mode = 0o755
		}
		if err := entry(h.Name, last, mode, h.ModTime, at); err != nil {
			return err
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" {
			return fmt.Errorf("%s has an owner", h.Name)
		}
		last = h.Name
	}
}

func checkZip(data []byte, at time.Time) error {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	last := ""
	for _, f := range r.File {
		if err := entry(f.Name, last, f.Mode(), f.Modified, at); err != nil {
			return err
		}
		last = f.Name
	}
	return nil
}
