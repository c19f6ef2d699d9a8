//go:build a3s_test

package main

import (
	"context"

	"github.com/a3s-lab/liba3s/internal/safego"
)

// testOperation gives the operations of a build for tests, which force faults.
func testOperation(method string) func(context.Context) ([]byte, error) {
	switch method {
	case "test.panic":
		return func(context.Context) ([]byte, error) { panic("forced in an export") }
	case "test.nil":
		return func(context.Context) ([]byte, error) {
			var p *[1]byte
			return p[:], nil
		}
	case "test.goroutine_panic":
		return func(context.Context) ([]byte, error) {
			failed := make(chan error, 1)
			safego.Go(method, func(err error) { failed <- err }, func() { panic("forced in a goroutine") })
			return nil, <-failed
		}
	case "test.block":
		return func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
	}
	return nil
}
