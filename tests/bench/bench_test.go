package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	a3s "github.com/a3s-lab/liba3s"
	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

// The paths behind the worst figures, for go test -cpuprofile.

func session1(tb testing.TB, script string) (*agent.Agent, string) {
	tb.Helper()
	dir := tb.TempDir()
	a, err := openAgent(context.Background(), dir, script)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { a.Close(context.Background()) })
	return a, dir
}

// BenchmarkProduce is one unmerged delta, from the script to memory.
func BenchmarkProduce(b *testing.B) {
	ctx := context.Background()
	a, dir := session1(b, words(manyEvents))
	for b.Loop() {
		s, err := a.OpenSession(ctx, spec(dir, unbounded(unmerged(options()))))
		if err == nil {
			_, err = play(ctx, s)
		}
		if err = errors.Join(err, s.Close(ctx)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/manyEvents, "ns/event")
}

// BenchmarkCycle is the life of a session with one short run.
func BenchmarkCycle(b *testing.B) {
	ctx := context.Background()
	a, dir := session1(b, words(7))
	b.ReportAllocs()
	for b.Loop() {
		s, err := a.OpenSession(ctx, spec(dir, unmerged(options())))
		if err == nil {
			_, err = play(ctx, s)
		}
		if err = errors.Join(err, s.Close(ctx)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParsed reads the events of a run by package a3s, type and text of each.
func BenchmarkParsed(b *testing.B) {
	const n = 20_000
	ctx := context.Background()
	dir := b.TempDir()
	acl, err := scripted(dir, words(n))
	if err != nil {
		b.Fatal(err)
	}
	a, err := a3s.Create(ctx, acl)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { a.Close(ctx) })
	r, err := (&goHost{a, dir}).finished(ctx, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := goParsed(r, n); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/event")
}

// BenchmarkTurn is one turn with one call of a tool that has effects, kept in memory
// and in a file store.
func BenchmarkTurn(b *testing.B) {
	const calls = 50
	for _, kept := range []bool{false, true} {
		b.Run(map[bool]string{false: "memory", true: "file"}[kept], func(b *testing.B) {
			ctx := context.Background()
			a, dir := session1(b, ticks(calls))
			store := ""
			if kept {
				store = filepath.Join(dir, "store")
			}
			b.ReportAllocs()
			for b.Loop() {
				s, err := a.OpenSession(ctx, spec(dir, stored(options(), store)))
				if err != nil {
					b.Fatal(err)
				}
				tick := goTool{effects: chat.Effects{Exec: true}, run: func(tool.Env) string { return "ticked" }}
				err = s.AddTool(tick)
				if err == nil {
					_, err = play(ctx, s)
				}
				if err = errors.Join(err, s.Close(ctx)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/calls, "ns/turn")
		})
	}
}

// BenchmarkRecover resumes a session of 1,000 events of 4.3 KB.
func BenchmarkRecover(b *testing.B) {
	ctx := context.Background()
	a, dir := session1(b, ticks(1))
	store := filepath.Join(dir, "store")
	s, _, err := chatter(ctx, a, dir, stored(options(), store), 1000)
	if err = errors.Join(err, s.Close(ctx)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := reopen(ctx, dir, store, s.ID()); err != nil {
			b.Fatal(err)
		}
	}
}
