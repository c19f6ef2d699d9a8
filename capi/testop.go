//go:build !a3s_test

package main

import "context"

// testOperation knows no operation: only builds for tests have any.
func testOperation(string) func(context.Context) ([]byte, error) { return nil }
