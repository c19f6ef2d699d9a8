package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var at = time.Unix(1795987259, 0).UTC()

// files are out of order and have modes that a umask could give.
func files() []Entry {
	return []Entry{
		{Name: "p/b.txt", Mode: 0o600, Data: []byte("b")},
		{Name: "p/a/run", Mode: 0o711, Data: []byte("#!/bin/sh\n")},
		{Name: "p-1/a", Mode: 0o644},
	}
}

var settled = []Entry{
	{Name: "p-1/a", Mode: 0o644, Data: []byte{}, Time: at},
	{Name: "p/a/run", Mode: 0o755, Data: []byte("#!/bin/sh\n"), Time: at},
	{Name: "p/b.txt", Mode: 0o644, Data: []byte("b"), Time: at},
}

func TestWritten(t *testing.T) {
	for name, write := range map[string]func([]Entry, time.Time) ([]byte, error){"x.tar.gz": Tar, "x.zip": Zip} {
		t.Run(name, func(t *testing.T) {
			data, err := write(files(), at.Add(300*time.Millisecond).In(time.FixedZone("", 3600)))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Read(name, data)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				got[i].Time = got[i].Time.UTC()
			}
			if !reflect.DeepEqual(got, settled) {
				t.Errorf("got  %v\nwant %v", got, settled)
			}
			again, err := write(settled, at)
			if err != nil || !bytes.Equal(again, data) {
				t.Errorf("the same content in another order and zone gives other bytes (%v)", err)
			}
			if err := Check(name, data, at); err != nil {
				t.Error(err)
			}
			if err := Check(name, data, at.Add(time.Hour)); err == nil {
				t.Error("another time is not noticed")
			}
		})
	}
}

// foreign is an archive as some program writes it: with a folder, owners, the time of day.
func foreign(t *testing.T) []byte {
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	gz.ModTime = at.Add(time.Minute)
	w := tar.NewWriter(gz)
	for _, h := range []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "p/", Mode: 0o700},
		{Typeflag: tar.TypeReg, Name: "p/b", Mode: 0o664, Size: 1, Uid: 7, Uname: "who", ModTime: at.Add(time.Minute)},
		{Typeflag: tar.TypeSymlink, Name: "p/a", Linkname: "b", Uid: 7},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			io.WriteString(w, "x")
		}
	}
	w.Close()
	gz.Close()
	return out.Bytes()
}

func TestSettle(t *testing.T) {
	data := foreign(t)
	got, err := Settle("x.tgz", data, at)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Tar([]Entry{{Name: "p/a", Link: "b"}, {Name: "p/b", Data: []byte("x")}}, at)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("settled archive differs from one made here (%v)", err)
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name    string
		entries []Entry
		at      time.Time
		want    string
	}{
		{"a name that leads out", []Entry{{Name: "../a"}}, at, `"../a" is no name`},
		{"an absolute name", []Entry{{Name: "/a"}}, at, `"/a" is no name`},
		{"twice", []Entry{{Name: "a"}, {Name: "b"}, {Name: "a"}}, at, "a is there twice"},
		{"too old", []Entry{{Name: "a"}}, time.Unix(0, 0), "no time before 1980, and this one is 1970-01-01"},
		{"a link", []Entry{{Name: "a", Link: "b"}}, at, "a is a link"},
	} {
		if _, err := Zip(test.entries, test.at); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
	if _, err := Read("x.zip", []byte("no zip")); err == nil || !strings.HasPrefix(err.Error(), "x.zip: ") {
		t.Errorf("garbage: got %v", err)
	}
}

// TestCheck makes each thing wrong that Check looks for.
func TestCheck(t *testing.T) {
	one := tar.Header{Typeflag: tar.TypeReg, Name: "b", Mode: 0o644, ModTime: at}
	for _, test := range []struct {
		name   string
		change func(*tar.Header, *gzip.Writer)
		want   string
	}{
		{"nothing", func(*tar.Header, *gzip.Writer) {}, ""},
		{"order", func(h *tar.Header, _ *gzip.Writer) { h.Name = "a" }, "a comes after a"},
		{"mode", func(h *tar.Header, _ *gzip.Writer) { h.Mode = 0o600 }, "b has mode 600"},
		{"time", func(h *tar.Header, _ *gzip.Writer) { h.ModTime = at.Add(time.Second) }, "b is of 20"},
		{"owner", func(h *tar.Header, _ *gzip.Writer) { h.Uid = 1000 }, "b has an owner"},
		{"group", func(h *tar.Header, _ *gzip.Writer) { h.Gname = "users" }, "b has an owner"},
		{"head", func(_ *tar.Header, gz *gzip.Writer) { gz.ModTime = at }, "its head names"},
	} {
		var out bytes.Buffer
		gz := gzip.NewWriter(&out)
		h := one
		test.change(&h, gz)
		w := tar.NewWriter(gz)
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a", Mode: 0o644, ModTime: at})
		w.WriteHeader(&h)
		w.Close()
		gz.Close()
		err := Check("x.crate", out.Bytes(), at)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), "x.crate: "+test.want)) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

func TestUnpack(t *testing.T) {
	data, err := Tar(append(files(), Entry{Name: "p/link", Link: "b.txt"}), at)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new")
	if err := Unpack("x.tar.gz", data, dir); err != nil {
		t.Fatal(err)
	}
	read, err := Folder(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	back, err := Tar(read, at)
	if err != nil || !bytes.Equal(back, data) {
		t.Errorf("what was unpacked is not what was packed (%v)", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "p/link")); err != nil || string(text) != "b" {
		t.Errorf("through the link: %q, %v", text, err)
	}
}
