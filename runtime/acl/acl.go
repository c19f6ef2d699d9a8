// Package acl reads the .acl configuration language: text in, an ordered tree with
// positions out. It knows the syntax and its limits only; what a name means, and the
// call env("NAME"), is for the reader of the tree. Floor 1.
//
// A document is a sequence of attributes (name = value, or name: value) and blocks
// (name "label" { ... }). Line ends separate nothing but strings, so that a whole
// block may stand on one line. Where the language tolerates a mistake, Parse adds a
// Warning; where it does not, Parse fails with line, column and a Diagnostic.
package acl

import (
	"fmt"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Document is a parsed text.
type Document struct {
	Body Body
	// Warnings are the mistakes that were tolerated, in the order of the text.
	Warnings []Warning
}

// Body is what a document or a block holds, in the order of the text.
type Body []Item

// Item is one entry of a Body. Exactly one field is set.
type Item struct {
	Attribute *Attribute
	Block     *Block
}

// Attribute is a name and its value.
type Attribute struct {
	Name  string
	Value Value
	// Span covers name and value, NameSpan the name alone.
	Span, NameSpan Span
}

// Block is a name, its labels and what stands between its braces.
type Block struct {
	Name     string
	Labels   []string
	Body     Body
	Span     Span
	NameSpan Span
}

// Kind tells the values apart.
type Kind string

// The kinds of a Value.
const (
	String Kind = "string"
	Number Kind = "number"
	Bool   Kind = "bool"
	Null   Kind = "null"
	List   Kind = "list"
	Object Kind = "object"
	Call   Kind = "call"
)

// Value is the right side of an attribute. Kind decides which fields count.
type Value struct {
	Kind Kind
	// Text of a String; the function's name of a Call.
	Text string
	// Bare marks a String that was written as an identifier, without quotes.
	Bare   bool
	Number float64
	Bool   bool
	// List holds the elements of a List or the arguments of a Call.
	List []Value
	// Object holds the pairs of an Object in order; of repeated names the last counts.
	Object []Attribute
	Span   Span
}

// Pos is a place in the text: Line and Column count from 1 (columns in characters),
// Offset counts bytes from 0.
type Pos struct {
	Line, Column, Offset int
}

// Span is a piece of the text, End excluded.
type Span struct {
	Start, End Pos
}

// Warning is a mistake that was tolerated.
type Warning struct {
	Message string
	Pos     Pos
}

// String gives the message with its place.
func (w Warning) String() string {
	return fmt.Sprintf("line %d, column %d: %s", w.Pos.Line, w.Pos.Column, w.Message)
}

// Diagnostic says what kind of mistake ended a parse. It is the detail "diagnostic"
// of the error.
type Diagnostic string

// The diagnostics.
const (
	DocumentBytesLimit   Diagnostic = "DocumentBytesLimit"
	TokenBytesLimit      Diagnostic = "TokenBytesLimit"
	NestingDepthLimit    Diagnostic = "NestingDepthLimit"
	CollectionItemsLimit Diagnostic = "CollectionItemsLimit"
	UnexpectedToken      Diagnostic = "UnexpectedToken"
	ExpectedToken        Diagnostic = "ExpectedToken"
	UnexpectedEOF        Diagnostic = "UnexpectedEof"
)

// Limits bound a parse. A field that is 0 or less takes its default.
type Limits struct {
	MaxDocumentBytes   int // 1 MiB
	MaxNestingDepth    int // 64 blocks, lists, objects and calls inside each other
	MaxCollectionItems int // 10,000 in a body, label list, list, object or argument list
	MaxTokenBytes      int // 256 KiB
}

func (l Limits) withDefaults() Limits {
	pick := func(v *int, otherwise int) {
		if *v <= 0 {
			*v = otherwise
		}
	}
	pick(&l.MaxDocumentBytes, 1<<20)
	pick(&l.MaxNestingDepth, 64)
	pick(&l.MaxCollectionItems, 10_000)
	pick(&l.MaxTokenBytes, 256<<10)
	return l
}

// maxWarnings keeps a text of nothing but mistakes from becoming a longer list of them.
const maxWarnings = 100

// Parse reads a document. The error is a *fault.Error with code CONFIG_ERROR and the
// details "line", "column", "offset" and "diagnostic".
func Parse(src []byte, limits Limits) (*Document, error) {
	limits = limits.withDefaults()
	p := &parser{lex: lexer{src: src, line: 1, column: 1, limits: limits}, limits: limits}
	body, err := p.document()
	if err != nil {
		return nil, err
	}
	return &Document{Body: body, Warnings: p.lex.warnings}, nil
}

func failAt(at Pos, d Diagnostic, format string, args ...any) *fault.Error {
	return fault.Of(fault.CodeConfig, "acl.parse", "line %d, column %d: %s", at.Line, at.Column, fmt.Sprintf(format, args...)).
		With("line", at.Line).With("column", at.Column).With("offset", at.Offset).With("diagnostic", string(d))
}

// Attribute gives the last attribute called name; nil if there is none.
func (b Body) Attribute(name string) *Attribute {
	for i := len(b) - 1; i >= 0; i-- {
		if a := b[i].Attribute; a != nil && a.Name == name {
			return a
		}
	}
	return nil
}

// Blocks gives the blocks called name, in order.
func (b Body) Blocks(name string) []*Block {
	var found []*Block
	for _, item := range b {
		if item.Block != nil && item.Block.Name == name {
			found = append(found, item.Block)
		}
	}
	return found
}

// Entry gives the value of the last pair called name of an Object.
func (v Value) Entry(name string) (Value, bool) {
	for i := len(v.Object) - 1; i >= 0; i-- {
		if v.Object[i].Name == name {
			return v.Object[i].Value, true
		}
	}
	return Value{}, false
}
