package sse

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

type got struct {
	Name, ID, Data string
	Whole          bool
}

// events reads everything and gives the error that ended it, nil for a clean end.
func events(r io.Reader, max int) ([]got, error) {
	in := NewReader(r, max)
	var all []got
	for {
		e, err := in.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, got{e.Name, e.ID, string(e.Data), e.Whole})
	}
}

func lines(r io.Reader, max int) ([]got, error) {
	in := NewLines(r, max)
	var all []got
	for {
		l, whole, err := in.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, got{Data: string(l), Whole: whole})
	}
}

func TestReader(t *testing.T) {
	long := strings.Repeat("x", 70<<10)
	tests := []struct {
		name string
		in   string
		want []got
	}{
		{"nothing", "", nil},
		{"one event", "data: a\n\n", []got{{Data: "a", Whole: true}}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []got{{Data: "a", Whole: true}, {Data: "b", Whole: true}}},
		{"lone CR", "data: a\r\rdata: b\r\r", []got{{Data: "a", Whole: true}, {Data: "b", Whole: true}}},
		{"mixed line ends", "data: a\rdata: b\n\r\ndata: c\n\n", []got{{Data: "a\nb", Whole: true}, {Data: "c", Whole: true}}},
		{"data lines are joined", "data: a\ndata: b\ndata:\n\n", []got{{Data: "a\nb\n", Whole: true}}},
		{"only one blank is dropped", "data:  a\n\n", []got{{Data: " a", Whole: true}}},
		{"no blank", "data:a\n\n", []got{{Data: "a", Whole: true}}},
		{"name and id", "event: ping\nid: 7\ndata: a\n\ndata: b\n\n", []got{{"ping", "7", "a", true}, {"", "7", "b", true}}},
		{"a name without data is forgotten", "event: ping\n\ndata: a\n\n", []got{{Data: "a", Whole: true}}},
		{"SSE-02 blocks without data", "retry: 3000\n\n: note\n\n:\n\ndata: a\n\n", []got{{Data: "a", Whole: true}}},
		{"SSE-01 a line of 70 KiB", "data: " + long + "\n\n", []got{{Data: long, Whole: true}}},
		{"unknown fields", "foo: bar\ndata\ndata: a\n\n", []got{{Data: "\na", Whole: true}}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []got{{Data: "a", Whole: true}}},
		{"end without the blank line", "data: a\n", []got{{Data: "a"}}},
		{"end inside a line", "data: a\n\ndata: [DONE]", []got{{Data: "a", Whole: true}, {Data: "[DONE]"}}},
		{"end inside a second line", "data: a\ndata: b", []got{{Data: "a\nb"}}},
		{"end inside a comment", "data: a\n: b", []got{{Data: "a"}}},
		{"UTF8-01 letters", "data: äöü €\n\n", []got{{Data: "äöü €", Whole: true}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in)), iotest.DataErrReader(strings.NewReader(tt.in))} {
				all, err := events(r, 0)
				if err != nil || !reflect.DeepEqual(all, tt.want) {
					t.Fatalf("got %v, %v, want %v", all, err, tt.want)
				}
			}
		})
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 70<<10)
	tests := []struct {
		name string
		in   string
		want []got
	}{
		{"nothing", "\n\r\n  \n", nil},
		{"lines", "{}\n[]\r\n\n1\n", []got{{Data: "{}", Whole: true}, {Data: "[]", Whole: true}, {Data: "1", Whole: true}}},
		{"a lone CR is no line end", "a\rb\n", []got{{Data: "a\rb", Whole: true}}},
		{"end inside a line", "{}\n{\"a\"", []got{{Data: "{}", Whole: true}, {Data: "{\"a\""}}},
		{"a long line", long + "\n", []got{{Data: long, Whole: true}}},
		{"UTF8-01 letters", "{\"a\":\"ä\"}\n", []got{{Data: "{\"a\":\"ä\"}", Whole: true}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				all, err := lines(r, 0)
				if err != nil || !reflect.DeepEqual(all, tt.want) {
					t.Fatalf("got %v, %v, want %v", all, err, tt.want)
				}
			}
		})
	}
}

func TestSSE01Ceiling(t *testing.T) {
	tests := []struct {
		name string
		in   string
		ok   bool
	}{
		{"at the ceiling", "data: " + strings.Repeat("x", 94) + "\n\n", true},
		{"above it", "data: " + strings.Repeat("x", 95) + "\n\n", false},
		{"above it without a line end", strings.Repeat("x", 200), false},
		{"above it in several lines", strings.Repeat("data: xxxxxxxxx\n", 20) + "\n", false},
		{"a comment above it", ":" + strings.Repeat("x", 100) + "\n\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				_, err := events(r, 100)
				var long *TooLongError
				if tt.ok != (err == nil) || (!tt.ok && (!errors.As(err, &long) || long.Limit != 100)) {
					t.Fatalf("got %v", err)
				}
			}
		})
	}
	if _, err := lines(strings.NewReader(strings.Repeat("x", 101)+"\n"), 100); err == nil {
		t.Fatal("a line above the ceiling was accepted")
	}
	if all, err := lines(strings.NewReader(strings.Repeat("x", 100)+"\n"), 100); err != nil || len(all) != 1 {
		t.Fatalf("got %v, %v", all, err)
	}
}

func TestReadErrors(t *testing.T) {
	broken := errors.New("broken")
	in := func() io.Reader {
		return io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken))
	}
	all, err := events(in(), 0)
	if !errors.Is(err, broken) || !reflect.DeepEqual(all, []got{{Data: "a", Whole: true}}) {
		t.Fatalf("got %v, %v", all, err)
	}
	if all, err = lines(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 0); !errors.Is(err, broken) || len(all) != 1 {
		t.Fatalf("got %v, %v", all, err)
	}
	if _, err = events(stuck{}, 0); !errors.Is(err, io.ErrNoProgress) {
		t.Fatalf("got %v", err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// FuzzReader checks that how the bytes arrive makes no difference and that the bounds hold.
func FuzzReader(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "data: a\r\rdata: b\r\n\r\n", ": c\n\nretry: 1\n\ndata:x\ndata\n\n", "\xef\xbb\xbfid: 1\ndata: \xc3"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		compare(t, in, events)
	})
}

// FuzzLines is FuzzReader for lines of JSON.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"{}\n", "{}\r\n\n[1", "\xc3\xa4\n\xc3"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		compare(t, in, lines)
	})
}

func compare(t *testing.T, in []byte, read func(io.Reader, int) ([]got, error)) {
	const limit = 64
	whole, err := read(strings.NewReader(string(in)), limit)
	bytewise, err2 := read(iotest.OneByteReader(strings.NewReader(string(in))), limit)
	if !reflect.DeepEqual(whole, bytewise) || (err == nil) != (err2 == nil) {
		t.Fatalf("at once %v, %v; byte by byte %v, %v", whole, err, bytewise, err2)
	}
	for _, e := range whole {
		if len(e.Data) > limit {
			t.Fatalf("%d bytes of data", len(e.Data))
		}
	}
}
