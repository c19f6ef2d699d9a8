// Command empty is a shared library of Go with one function that does nothing: what a
// call from C into Go costs without any of this project's code. Floor 13.
package main

import "C"

//export empty
func empty() {}

func main() {}
