package acl

import "github.com/a3s-lab/liba3s/runtime/fault"

func (p *parser) value() (Value, *fault.Error) {
	t := p.tok
	v := Value{Span: t.span}
	switch {
	case t.kind == tString:
		v.Kind, v.Text = String, t.text
	case t.kind == tNumber:
		v.Kind, v.Number = Number, t.number
	case t.kind == tIdent:
		return p.word()
	case p.at("["):
		items, end, err := p.sequence("]", false)
		return Value{Kind: List, List: items, Span: Span{t.span.Start, end}}, err
	case p.at("{"):
		pairs, end, err := p.object()
		return Value{Kind: Object, Object: pairs, Span: Span{t.span.Start, end}}, err
	default:
		return v, p.unexpected("a value")
	}
	return v, p.advance()
}

// word reads a value that starts with an identifier: a keyword, a call, a block in
// the place of a value, or a bare string.
func (p *parser) word() (Value, *fault.Error) {
	name := p.tok
	v := Value{Span: name.span}
	switch name.text {
	case "true", "false":
		v.Kind, v.Bool = Bool, name.text == "true"
		return v, p.advance()
	case "null":
		v.Kind = Null
		return v, p.advance()
	}
	if p.labelled() {
		return p.blockValue()
	}
	if err := p.advance(); err != nil {
		return v, err
	}
	if p.at("(") {
		args, end, err := p.sequence(")", true)
		return Value{Kind: Call, Text: name.text, List: args, Span: Span{name.span.Start, end}}, err
	}
	v.Kind, v.Text, v.Bare = String, name.text, true
	return v, nil
}

// labelled says whether labels and an opening brace follow on the same line.
func (p *parser) labelled() bool {
	ahead := p.lex
	ahead.quiet = true
	for {
		t, err := ahead.next()
		if err != nil || t.kind != tString {
			return err == nil && t.kind == tPunct && t.text == "{"
		}
	}
}

// blockValue keeps a block in the place of a value as {_block = {name, labels, attributes}}.
func (p *parser) blockValue() (Value, *fault.Error) {
	name := p.tok
	if err := p.advance(); err != nil {
		return Value{}, err
	}
	b, err := p.block(name)
	if err != nil {
		return Value{}, err
	}
	labels := Value{Kind: List, Span: b.Span}
	for _, l := range b.Labels {
		labels.List = append(labels.List, Value{Kind: String, Text: l, Span: b.Span})
	}
	pair := func(name string, v Value) Attribute {
		return Attribute{Name: name, Value: v, Span: b.Span, NameSpan: b.NameSpan}
	}
	inner := Value{Kind: Object, Span: b.Span, Object: []Attribute{
		pair("name", Value{Kind: String, Text: b.Name, Span: b.NameSpan}),
		pair("labels", labels),
		pair("attributes", Value{Kind: Object, Object: p.attributes(b.Body), Span: b.Span}),
	}}
	return Value{Kind: Object, Object: []Attribute{pair("_block", inner)}, Span: b.Span}, nil
}

func (p *parser) object() ([]Attribute, Pos, *fault.Error) {
	body, end, err := p.body()
	if err != nil {
		return nil, end, err
	}
	return p.attributes(body), end, nil
}

// attributes keeps what an object can hold.
func (p *parser) attributes(body Body) []Attribute {
	var pairs []Attribute
	for _, item := range body {
		if item.Block != nil {
			p.lex.warn(item.Block.NameSpan.Start, "block %q inside an object value is ignored; write %s = { ... }", clip(item.Block.Name), clip(item.Block.Name))
			continue
		}
		pairs = append(pairs, *item.Attribute)
	}
	return pairs
}

// sequence reads the values of a list or the arguments of a call; the current token
// is the opening bracket. Only arguments need their commas.
func (p *parser) sequence(closing string, commas bool) (items []Value, end Pos, err *fault.Error) {
	if err := p.enter(); err != nil {
		return nil, end, err
	}
	defer p.leave()
	open := p.tok
	if err := p.advance(); err != nil {
		return nil, end, err
	}
	separated := true
	for {
		switch {
		case p.tok.kind == tEOF:
			return nil, end, failAt(p.tok.span.Start, UnexpectedEOF, "the %s of line %d, column %d is never closed", open.text, open.span.Start.Line, open.span.Start.Column)
		case p.at(closing):
			end = p.tok.span.End
			return items, end, p.advance()
		case p.tok.kind == tNewline:
			if err := p.advance(); err != nil {
				return nil, end, err
			}
		case p.at(",") && len(items) > 0 && !separated:
			separated = true
			if err := p.advance(); err != nil {
				return nil, end, err
			}
		case commas && !separated:
			return nil, end, failAt(p.tok.span.Start, ExpectedToken, "found %s where a comma or %s should be", p.tok, closing)
		default:
			if err := p.room(len(items)); err != nil {
				return nil, end, err
			}
			v, err := p.value()
			if err != nil {
				return nil, end, err
			}
			items = append(items, v)
			separated = false
		}
	}
}
