package agent

import (
	"math"

	"github.com/a3s-lab/liba3s/runtime/acl"
)

// value evaluates env("NAME"); ok is false where the attribute counts as absent: an
// unset variable, or null.
func (r *reader) value(a acl.Attribute) (v acl.Value, ok bool, err error) {
	v = a.Value
	if v.Kind == acl.Null {
		return v, false, nil
	}
	if v.Kind != acl.Call {
		return v, true, nil
	}
	if v.Text != "env" || len(v.List) != 1 || v.List[0].Kind != acl.String {
		return v, false, r.fail(v.Span.Start, "%s: the only call is env(\"NAME\"), found %s(...)", a.Name, v.Text)
	}
	text, set := r.env[v.List[0].Text]
	if !set || text == "" {
		return v, false, nil
	}
	return acl.Value{Kind: acl.String, Text: text, Span: v.Span}, true, nil
}

func (r *reader) wrong(a acl.Attribute, want string) error {
	return r.fail(a.Value.Span.Start, "%s must be %s, found a %s", a.Name, want, a.Value.Kind)
}

func (r *reader) str(a acl.Attribute, to *string) error {
	v, ok, err := r.value(a)
	if err != nil || !ok {
		return err
	}
	if v.Kind != acl.String {
		return r.wrong(a, "a string")
	}
	*to = v.Text
	return nil
}

func (r *reader) boolean(a acl.Attribute, to *bool) error {
	v, ok, err := r.value(a)
	if err != nil || !ok {
		return err
	}
	if v.Kind != acl.Bool {
		return r.wrong(a, "true or false")
	}
	*to = v.Bool
	return nil
}

// into reads a whole number that is not negative.
func (r *reader) into(a acl.Attribute, to *int) error {
	v, ok, err := r.value(a)
	if err != nil || !ok {
		return err
	}
	if v.Kind != acl.Number || v.Number != math.Trunc(v.Number) || v.Number < 0 || v.Number > math.MaxInt32 {
		return r.wrong(a, "a whole number from 0 to 2147483647")
	}
	*to = int(v.Number)
	return nil
}

func (r *reader) count(a acl.Attribute, to **int) error {
	n := -1
	if err := r.into(a, &n); err != nil || n < 0 {
		return err
	}
	*to = &n
	return nil
}

func (r *reader) strings(a acl.Attribute, to *map[string]string) error {
	if a.Value.Kind != acl.Object {
		return r.wrong(a, "an object of strings")
	}
	var body acl.Body
	for i := range a.Value.Object {
		body = append(body, acl.Item{Attribute: &a.Value.Object[i]})
	}
	m, err := r.pairs(body)
	*to = m
	return err
}

func (r *reader) pairs(body acl.Body) (map[string]string, error) {
	m := map[string]string{}
	for _, it := range body {
		if it.Attribute == nil {
			continue
		}
		text := ""
		if err := r.str(*it.Attribute, &text); err != nil {
			return nil, err
		}
		if text != "" {
			m[it.Attribute.Name] = text
		}
	}
	return m, nil
}
