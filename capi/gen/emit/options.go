package emit

import "strings"

// options makes docs/options.md.
func (s *source) options() []byte {
	w := &writer{}
	w.f("<!-- %s -->\n\n# Session options\n\n", Mark)
	w.f("%s\n", wrap("Every option is in one of three states. *Works*: it does what it says. *Default only*: only its default, or the value that means \"off\", is accepted until its part is built; any other value is refused by name. *Refused*: giving it at all is an error that names it (`SESSION_CONFIGURATION_ERROR`). An unknown option is refused too.", "", 100))
	w.f("| option | type | default | state | what it does |\n| --- | --- | --- | --- | --- |\n")
	for _, o := range s.types.options {
		w.f("| `%s` | %s | %s | %s | %s |\n", o.Name, cell(o.Type), cell(o.Default), cell(o.State), cell(o.Doc))
	}
	return w.Bytes()
}

// cell keeps a text inside one cell of a Markdown table.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ").Replace(s)
}
