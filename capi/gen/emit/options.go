package emit

import (
	"reflect"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/agent"
)

// options makes docs/options.md.
func (s *source) options() []byte {
	w := &writer{}
	w.f("<!-- %s -->\n\n# Session options\n\n", Mark)
	w.f("%s\n", wrap("Every option is in one of three states. *Works*: it does what it says. *Default only*: only its default, or the value that means \"off\", is accepted until its part is built; any other value is refused by name. *Refused*: giving it at all is an error that names it (`SESSION_CONFIGURATION_ERROR`). An unknown option is refused too.", "", 100))
	w.f("| option | type | default | state | what it does |\n| --- | --- | --- | --- | --- |\n")
	for _, o := range s.types.options {
		w.f("| `%s` | %s | %s | %s | %s |\n", o.Name, cell(o.Type), cell(o.Default), cell(o.State), cell(o.Doc))
	}
	w.f("\n## Objects\n\n| option | keys |\n| --- | --- |\n")
	o := reflect.TypeOf(agent.Options{})
	for i := range o.NumField() {
		f := o.Field(i)
		if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct {
			w.f("| `%s` | %s |\n", jsonKey(f), strings.Join(jsonKeys(f.Type.Elem()), ", "))
		}
	}
	return w.Bytes()
}

// jsonKeys names the JSON keys of a struct.
func jsonKeys(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name := jsonKey(t.Field(i)); name != "" && name != "-" {
			names = append(names, "`"+name+"`")
		}
	}
	return names
}

func jsonKey(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// cell keeps a text inside one cell of a Markdown table.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ").Replace(s)
}
