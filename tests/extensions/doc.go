// Package extensions tests every kind of host extension from end to end: a program that
// reads an agent's control stream and answers, through the operations that all bindings
// use. Floor 13.
package extensions
