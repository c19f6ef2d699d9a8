package acl

import "github.com/a3s-lab/liba3s/runtime/fault"

// parser is a recursive descent over one token of lookahead. Its depth is bounded by
// the limits, so that hostile text cannot exhaust the stack.
type parser struct {
	lex    lexer
	tok    token
	limits Limits
	depth  int
}

func (p *parser) advance() *fault.Error {
	t, err := p.lex.next()
	p.tok = t
	return err
}

func (p *parser) newlines() *fault.Error {
	for p.tok.kind == tNewline {
		if err := p.advance(); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) at(punct string) bool { return p.tok.kind == tPunct && p.tok.text == punct }

func (p *parser) unexpected(wanted string) *fault.Error {
	if p.tok.kind == tEOF {
		return failAt(p.tok.span.Start, UnexpectedEOF, "the document ends where %s should be", wanted)
	}
	return failAt(p.tok.span.Start, UnexpectedToken, "found %s where %s should be", p.tok, wanted)
}

func (p *parser) enter() *fault.Error {
	if p.depth++; p.depth > p.limits.MaxNestingDepth {
		return failAt(p.tok.span.Start, NestingDepthLimit, "nested more than %d deep", p.limits.MaxNestingDepth)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

func (p *parser) room(count int) *fault.Error {
	if count >= p.limits.MaxCollectionItems {
		return failAt(p.tok.span.Start, CollectionItemsLimit, "more than %d items in one place", p.limits.MaxCollectionItems)
	}
	return nil
}

// document returns error, not *fault.Error, so that no typed nil reaches the caller.
func (p *parser) document() (Body, error) {
	if err := p.lex.check(); err != nil {
		return nil, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	var body Body
	names := map[string]Pos{}
	for {
		if err := p.newlines(); err != nil {
			return nil, err
		}
		if p.tok.kind == tEOF {
			return body, nil
		}
		if p.tok.kind != tIdent {
			return nil, p.unexpected("the name of an attribute or a block")
		}
		if err := p.room(len(body)); err != nil {
			return nil, err
		}
		item, err := p.item()
		if err != nil {
			return nil, err
		}
		p.repeated(names, item)
		body = append(body, item)
	}
}

// repeated warns of an attribute that an earlier one of the same name loses to.
func (p *parser) repeated(names map[string]Pos, item Item) {
	if item.Attribute == nil {
		return
	}
	a := item.Attribute
	if first, again := names[a.Name]; again {
		p.lex.warn(a.NameSpan.Start, "%q was already set on line %d; the last one counts", clip(a.Name), first.Line)
	}
	names[a.Name] = a.NameSpan.Start
}

// item reads an attribute or a block; the current token is its name. A quoted name is
// for attributes, such as HTTP headers, that are no identifiers.
func (p *parser) item() (Item, *fault.Error) {
	name := p.tok
	if err := p.advance(); err != nil {
		return Item{}, err
	}
	if p.at("=") || p.at(":") {
		if err := p.advance(); err != nil {
			return Item{}, err
		}
		if err := p.newlines(); err != nil {
			return Item{}, err
		}
		v, err := p.value()
		if err != nil {
			return Item{}, err
		}
		return Item{Attribute: &Attribute{
			Name: name.text, Value: v,
			Span: Span{name.span.Start, v.Span.End}, NameSpan: name.span,
		}}, nil
	}
	b, err := p.block(name)
	if err != nil {
		return Item{}, err
	}
	return Item{Block: b}, nil
}

// block reads labels and body; the current token follows the name.
func (p *parser) block(name token) (*Block, *fault.Error) {
	b := &Block{Name: name.text, NameSpan: name.span, Span: name.span}
	for p.tok.kind == tString {
		if err := p.room(len(b.Labels)); err != nil {
			return nil, err
		}
		b.Labels = append(b.Labels, p.tok.text)
		b.Span.End = p.tok.span.End
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	if !p.opens() {
		// A label alone is a way to write a value (default_model "a/b"). Taking what
		// follows for the body would hide the rest of the document in this block.
		if len(b.Labels) > 0 && (p.tok.kind == tNewline || p.tok.kind == tEOF || p.at("}")) {
			p.lex.warn(name.span.Start, "block %q has no body", clip(name.text))
			return b, nil
		}
		found := p.tok
		return nil, failAt(found.span.Start, ExpectedToken,
			"found %s after %q; write %s = value, or %s { ... }", found, clip(name.text), clip(name.text), clip(name.text))
	}
	if err := p.newlines(); err != nil {
		return nil, err
	}
	body, end, err := p.body()
	b.Body, b.Span.End = body, end
	return b, err
}

// opens says whether the next token that is no line end is an opening brace.
func (p *parser) opens() bool {
	if p.tok.kind != tNewline {
		return p.at("{")
	}
	ahead := p.lex
	ahead.quiet = true
	for {
		t, err := ahead.next()
		if err != nil || t.kind != tNewline {
			return err == nil && t.kind == tPunct && t.text == "{"
		}
	}
}

// body reads from an opening brace to its closing one.
func (p *parser) body() (body Body, end Pos, err *fault.Error) {
	if err := p.enter(); err != nil {
		return nil, end, err
	}
	defer p.leave()
	open := p.tok.span.Start
	if err := p.advance(); err != nil {
		return nil, end, err
	}
	names := map[string]Pos{}
	for {
		switch {
		case p.tok.kind == tEOF:
			return nil, end, failAt(p.tok.span.Start, UnexpectedEOF, "the { of line %d, column %d is never closed", open.Line, open.Column)
		case p.at("}"):
			end = p.tok.span.End
			return body, end, p.advance()
		case p.tok.kind == tNewline || p.at(","):
			if err := p.advance(); err != nil {
				return nil, end, err
			}
		case p.tok.kind == tIdent || p.tok.kind == tString && p.assigns():
			if err := p.room(len(body)); err != nil {
				return nil, end, err
			}
			item, err := p.item()
			if err != nil {
				return nil, end, err
			}
			p.repeated(names, item)
			body = append(body, item)
		default:
			p.lex.warn(p.tok.span.Start, "%s is ignored here", p.tok)
			if err := p.advance(); err != nil {
				return nil, end, err
			}
		}
	}
}

// assigns says whether a separator follows the current token.
func (p *parser) assigns() bool {
	ahead := p.lex
	ahead.quiet = true
	t, err := ahead.next()
	return err == nil && t.kind == tPunct && (t.text == "=" || t.text == ":")
}
