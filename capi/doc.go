// Package main is the C rim of libA3S, built with -buildmode=c-shared. It owns handles,
// the check of what comes in, the errors that go out, started calls, streams as C sees
// them and the order of closing. It decides nothing: every export looks up a handle,
// decodes, calls op, and encodes. Files named export_*.go hold the C types; the others
// are free of them. Floor 12: it imports op, event, host, fault and internal/safego.
package main

// main is never called in a shared library.
func main() {}
