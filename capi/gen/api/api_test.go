package api

import (
	"strings"
	"testing"
)

func TestParseRefuses(t *testing.T) {
	const ok = `{"name":"a3s_x_do","result":"a3s_status","params":[{"name":"h","type":"a3s_handle","doc":"d"}],
		"doc":"d","owns":"o","threads":"t","fails":["E_HANDLE"],"since":"1.0"}`
	wrap := func(fns string) string { return `{"nouns":[{"name":"x","functions":[` + fns + `]}]}` }
	tests := map[string]struct{ in, want string }{
		"fine":          {wrap(ok), ""},
		"unknown key":   {wrap(strings.Replace(ok, `"doc"`, `"dok"`, 1)), "unknown field"},
		"twice":         {wrap(ok + "," + ok), "described twice"},
		"name":          {wrap(strings.Replace(ok, "a3s_x_do", "x_do", 1)), "must look like"},
		"result type":   {wrap(strings.Replace(ok, "a3s_status", "bool", 1)), "unknown result type"},
		"param type":    {wrap(strings.Replace(ok, "a3s_handle", "struct s", 1)), "unknown type"},
		"no threads":    {wrap(strings.Replace(ok, `"threads":"t"`, `"threads":""`, 1)), "must be given"},
		"since":         {wrap(strings.Replace(ok, `"1.0"`, `"one"`, 1)), "major.minor"},
		"failure":       {wrap(strings.Replace(ok, "E_HANDLE", "EHANDLE", 1)), "unknown failure"},
		"output first":  {wrap(strings.Replace(ok, `[{"name"`, `[{"name":"o","type":"uint64_t *","doc":"d","out":true},{"name"`, 1)), "outputs come last"},
		"not an object": {`[]`, "cannot unmarshal"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tt.in))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDeclarations(t *testing.T) {
	f := Function{Name: "a3s_last_error", Result: "a3s_status", Params: []Param{{Name: "out", Type: "a3s_buf *"}}}
	if got, want := f.Decl(), "a3s_status a3s_last_error(a3s_buf *out)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := f.Prototype(), "a3s_status a3s_last_error(a3s_buf *)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	g := Function{Name: "a3s_build_info", Result: "const char *"}
	if got, want := g.Decl(), "const char *a3s_build_info(void)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLoad(t *testing.T) {
	a, err := Load("../../api.json")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(a.Functions()); n < 27 {
		t.Errorf("got %d functions", n)
	}
}
