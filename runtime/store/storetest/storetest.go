// Package storetest is the suite that every back-end of runtime/store passes. It
// checks the contract of the port; what only one back-end can break, such as a torn
// file, is that back-end's to test. Floor 5.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/store"
)

// Run runs the suite. fresh gives, for one test, a function whose every call opens a
// store over the same, at first empty, place; a back-end whose sessions live in the
// object gives the same object each time.
func Run(t *testing.T, fresh func(t *testing.T) func() store.Store) {
	tests := []struct {
		name string
		run  func(*testing.T, func() store.Store)
	}{
		{"RoundTrip", roundTrip},
		{"Groups", groups},
		{"Refusals", refusals},
		{"Generations", generations},
		{"ReadPositions", readPositions},
		{"ReadBesideAppend", readBesideAppend},
		{"OneWriter", oneWriter},
		{"SaveRefusesWhatDoesNotHold", saveRefuses},
		{"NothingShared", nothingShared},
		{"Blobs", blobs},
		{"List", list},
		{"Delete", remove},
		{"EmptySession", emptySession},
		{"ManySmallFacts", manySmallFacts},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, fresh(t)) })
	}
}

// Snapshot makes a valid snapshot of a session that says text.
func Snapshot(id, text string) *record.Snapshot {
	s := &record.Snapshot{SchemaVersion: 1, Session: record.SessionData{ID: id, State: "Active",
		Messages: []chat.Message{chat.Say(chat.User, text)}}}
	s.Normalise()
	return s
}

// Open opens and loads a session, and gives it up at the end of the test.
func Open(t testing.TB, s store.Store, id string) (store.Session, store.Kept) {
	t.Helper()
	se, err := s.Open(context.Background(), id, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { se.Close() })
	kept, err := se.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return se, kept
}

// Append appends a group of facts given as text.
func Append(t testing.TB, se store.Session, facts ...string) record.Pos {
	t.Helper()
	group := make([][]byte, len(facts))
	for i, f := range facts {
		group[i] = []byte(f)
	}
	pos, err := se.Append(context.Background(), group)
	if err != nil {
		t.Fatal(err)
	}
	return pos
}

// Save saves a snapshot.
func Save(t testing.TB, se store.Session, snap *record.Snapshot) {
	t.Helper()
	if err := se.Save(context.Background(), snap); err != nil {
		t.Fatal(err)
	}
}

// Close gives a session up.
func Close(t testing.TB, se store.Session) {
	t.Helper()
	if err := se.Close(); err != nil {
		t.Fatal(err)
	}
}

// Collect reads facts to their end.
func Collect(seq iter.Seq2[[]byte, error]) ([]string, error) {
	all := []string{}
	for b, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, string(b))
	}
	return all, nil
}

// Want checks that facts are exactly these.
func Want(t testing.TB, seq iter.Seq2[[]byte, error], want ...string) {
	t.Helper()
	got, err := Collect(seq)
	if err != nil {
		t.Fatal(err)
	}
	if want == nil {
		want = []string{}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("facts\n got %q\nwant %q", cut(got), cut(want))
	}
}

func cut(list []string) []string {
	if len(list) > 20 {
		return append(append([]string{}, list[:20]...), fmt.Sprintf("... %d in all", len(list)))
	}
	return list
}

// WantSnapshot checks that a snapshot is this one; nil for none.
func WantSnapshot(t testing.TB, got, want *record.Snapshot) {
	t.Helper()
	g, err1 := json.Marshal(got)
	w, err2 := json.Marshal(want)
	if err1 != nil || err2 != nil || string(g) != string(w) {
		t.Fatalf("snapshot %v %v\n got %s\nwant %s", err1, err2, g, w)
	}
}

// WantKind checks the kind of an error.
func WantKind(t testing.TB, err error, kind fault.Kind) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != kind || e.Op == "" || e.Message == "" {
		t.Fatalf("got error %#v, want one of kind %q with op and message", err, kind)
	}
}
