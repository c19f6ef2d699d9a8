// Package archive reads archives and writes them so that their bytes depend on their content
// alone: entries in the order of their names, one owner, two modes, one time.
package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Entry is a file of an archive. Folders are not kept: they follow from the names.
type Entry struct {
	Name string      // relative, with slashes
	Mode fs.FileMode // 0o755 if anybody may run it, else 0o644
	Link string      // what a symbolic link names; empty for a file
	Data []byte
	Time time.Time // as read; not used when writing
}

// sorted gives the entries in the order they are written in, with their modes settled.
func sorted(entries []Entry) ([]Entry, error) {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	for i, e := range entries {
		if !fs.ValidPath(e.Name) || e.Name == "." {
			return nil, fmt.Errorf("%q is no name for an entry of an archive", e.Name)
		}
		if i > 0 && entries[i-1].Name == e.Name {
			return nil, fmt.Errorf("%s is there twice", e.Name)
		}
		entries[i].Mode = 0o644
		if e.Mode&0o111 != 0 {
			entries[i].Mode = 0o755
		}
	}
	return entries, nil
}

// Tar makes a .tar.gz of the entries, all of the time at.
func Tar(entries []Entry, at time.Time) ([]byte, error) {
	entries, err := sorted(entries)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	gz, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(gz)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.Name, Mode: int64(e.Mode), Size: int64(len(e.Data)), ModTime: at.UTC().Truncate(time.Second)}
		if e.Link != "" {
			h.Typeflag, h.Linkname, h.Mode, h.Size = tar.TypeSymlink, e.Link, 0o777, 0
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if e.Link != "" {
			continue
		}
		if _, err := w.Write(e.Data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := gz.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Zip makes a .zip of the entries, all of the time at. It holds no links.
func Zip(entries []Entry, at time.Time) ([]byte, error) {
	entries, err := sorted(entries)
	if err != nil {
		return nil, err
	}
	if at.UTC().Year() < 1980 {
		return nil, fmt.Errorf("a zip file holds no time before 1980, and this one is %s", at.UTC().Format(time.DateOnly))
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) { return flate.NewWriter(to, flate.BestCompression) })
	for _, e := range entries {
		if e.Link != "" {
			return nil, fmt.Errorf("%s is a link, and a zip file holds none", e.Name)
		}
		h := &zip.FileHeader{Name: e.Name, Method: zip.Deflate, Modified: at.UTC().Truncate(time.Second)}
		h.SetMode(e.Mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(e.Data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// IsZip says whether a file of this name is a zip file; the others are .tar.gz.
func IsZip(name string) bool {
	return strings.HasSuffix(name, ".zip") || strings.HasSuffix(name, ".whl")
}

// Read gives the entries of an archive in their order; name says which kind it is.
func Read(name string, data []byte) ([]Entry, error) {
	read := readTar
	if IsZip(name) {
		read = readZip
	}
	entries, err := read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return entries, nil
}

func readTar(data []byte) ([]Entry, error) {
	gz, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if err == io.EOF {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		e := Entry{Name: h.Name, Mode: fs.FileMode(h.Mode) & fs.ModePerm, Time: h.ModTime}
		switch h.Typeflag {
		case tar.TypeDir:
			continue
		case tar.TypeSymlink:
			e.Link = h.Linkname
		case tar.TypeReg:
			if e.Data, err = io.ReadAll(r); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%s is neither file, folder nor symbolic link", h.Name)
		}
		entries = append(entries, e)
	}
}

func readZip(data []byte) ([]Entry, error) {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, f := range r.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		from, err := f.Open()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(from)
		from.Close()
		if err != nil {
			return nil, err
		}
		entries = append(entries, Entry{Name: f.Name, Mode: f.Mode() & fs.ModePerm, Data: text, Time: f.Modified})
	}
	return entries, nil
}

// Settle writes an archive that another program made anew, by the rules of this package.
func Settle(name string, data []byte, at time.Time) ([]byte, error) {
	entries, err := Read(name, data)
	if err != nil {
		return nil, err
	}
	if IsZip(name) {
		return Zip(entries, at)
	}
	return Tar(entries, at)
}
