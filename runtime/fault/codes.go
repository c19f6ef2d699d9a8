package fault

// Kind is the nature of a failure. It decides the status of the C interface.
type Kind string

// The kinds.
const (
	Invalid     Kind = "invalid"     // the caller's words are wrong; the same call fails again
	Handle      Kind = "handle"      // no live object behind this handle
	Forked      Kind = "forked"      // called in a forked child of the process that loaded the library
	Timeout     Kind = "timeout"     // a time limit of the caller's ran out
	Busy        Kind = "busy"        // somebody else holds it now
	Buffer      Kind = "buffer"      // the caller's buffer is too small
	End         Kind = "end"         // the stream has ended
	Cancelled   Kind = "cancelled"   // asked to stop
	Interrupted Kind = "interrupted" // the process that did it died
	Woken       Kind = "woken"       // a blocked read was woken
	ABI         Kind = "abi"         // header and library do not fit
	NotFound    Kind = "not_found"   // no such thing
	Exists      Kind = "exists"      // already there
	Conflict    Kind = "conflict"    // changed since it was read
	Denied      Kind = "denied"      // policy or boundary says no
	IO          Kind = "io"          // disk, store or network of ours
	Provider    Kind = "provider"    // a model service failed
	Limit       Kind = "limit"       // a bound was met
	Unsupported Kind = "unsupported" // this build or back-end cannot do it
	Closed      Kind = "closed"      // used after close
	Internal    Kind = "internal"    // a fault of libA3S
)

// Status is a number of the C interface: 0 ok, above 0 information, below 0 an error.
type Status int32

// Statuses that are no error.
const (
	OK      Status = 0 // done
	Pending Status = 1 // goes on in the background
)

// Code is a stable error code of the public contract.
type Code string

// The codes.
const (
	CodeConfig         Code = "CONFIG_ERROR"
	CodeLLM            Code = "LLM_ERROR"
	CodeTool           Code = "TOOL_ERROR"
	CodeSession        Code = "SESSION_ERROR"
	CodeSessionConfig  Code = "SESSION_CONFIGURATION_ERROR"
	CodeSessionInit    Code = "SESSION_INITIALIZATION_ERROR"
	CodeSessionClosed  Code = "SESSION_CLOSED"
	CodeSessionBusy    Code = "SESSION_BUSY"
	CodeBudget         Code = "BUDGET_EXHAUSTED"
	CodeSecurity       Code = "SECURITY_ERROR"
	CodeContext        Code = "CONTEXT_ERROR"
	CodeIO             Code = "IO_ERROR"
	CodeSerialization  Code = "SERIALIZATION_ERROR"
	CodeInternal       Code = "INTERNAL_ERROR"
	CodeCancelled      Code = "CANCELLED"
	CodeInterrupted    Code = "INTERRUPTED"
	CodeTimeout        Code = "TIMEOUT"
	CodeForked         Code = "FORKED"
	CodeInvalidRequest Code = "INVALID_REQUEST"
	CodeInvalidHandle  Code = "INVALID_HANDLE"
	CodeBufferTooSmall Code = "BUFFER_TOO_SMALL"
	CodeStreamEnd      Code = "STREAM_END"
	CodeWoken          Code = "WOKEN"
	CodeABI            Code = "ABI_MISMATCH"
	CodeNotFound       Code = "NOT_FOUND"
	CodeAlreadyExists  Code = "ALREADY_EXISTS"
	CodeConflict       Code = "CONFLICT"
	CodeUnsupported    Code = "UNSUPPORTED_OPERATION"
)

// KindRow is one line of the kind table.
type KindRow struct {
	Kind   Kind
	Status Status
	Name   string // the C constant without its A3S_ prefix
	Code   Code   // the default code
	Doc    string
}

// CodeRow is one line of the code table.
type CodeRow struct {
	Code   Code
	Kind   Kind   // the default kind
	Prefix string // what every message of this code starts with
	Doc    string
}

// Kinds is the kind table in the order of the statuses; bindings are generated from it.
// The numbers are fixed and never used for anything else (reference: the C interface).
var Kinds = []KindRow{
	{Invalid, -1, "E_INVALID", CodeInvalidRequest, "the caller's words are wrong; the same call fails again"},
	{Handle, -2, "E_HANDLE", CodeInvalidHandle, "no live object behind this handle"},
	{Forked, -3, "E_FORKED", CodeForked, "called in a forked child of the process that loaded the library"},
	{Timeout, -4, "E_TIMEOUT", CodeTimeout, "a time limit ran out"},
	{Busy, -5, "E_BUSY", CodeSessionBusy, "somebody else holds it now"},
	{Buffer, -6, "E_BUFFER", CodeBufferTooSmall, "the caller's buffer is too small"},
	{End, -7, "E_END", CodeStreamEnd, "the stream has ended"},
	{Cancelled, -8, "E_CANCELLED", CodeCancelled, "asked to stop"},
	{Woken, -9, "E_WOKEN", CodeWoken, "a blocked read was woken"},
	{ABI, -10, "E_ABI", CodeABI, "header and library do not fit"},
	{NotFound, -11, "E_NOTFOUND", CodeNotFound, "no such thing"},
	{Exists, -12, "E_EXISTS", CodeAlreadyExists, "already there"},
	{Denied, -13, "E_DENIED", CodeSecurity, "policy or a boundary says no"},
	{IO, -14, "E_IO", CodeIO, "disk, store or network failed"},
	{Provider, -15, "E_PROVIDER", CodeLLM, "a model service failed"},
	{Limit, -16, "E_LIMIT", CodeContext, "a bound was met"},
	{Unsupported, -17, "E_UNSUPPORTED", CodeUnsupported, "this build or back-end cannot do it"},
	{Closed, -18, "E_CLOSED", CodeSessionClosed, "used after close"},
	{Conflict, -19, "E_CONFLICT", CodeConflict, "changed since it was read"},
	{Interrupted, -20, "E_INTERRUPTED", CodeInterrupted, "the process that did it died"},
	{Internal, -99, "E_INTERNAL", CodeInternal, "a fault of libA3S"},
}

// Codes is the code table of the contract (reference: contract, section 8).
var Codes = []CodeRow{
	{CodeConfig, Invalid, "Config error: ", "the configuration cannot be read or does not make sense"},
	{CodeLLM, Provider, "LLM error: ", "the model service failed"},
	{CodeTool, Internal, "Tool error: ", "the tool machinery failed"},
	{CodeSession, IO, "Session error: ", "store, resume or checkpoint failed"},
	{CodeSessionConfig, Invalid, "Invalid session configuration for ", "a session option is wrong; the message starts with its name in quotes"},
	{CodeSessionInit, IO, "Failed to initialize ", "a part of the session could not be started"},
	{CodeSessionClosed, Closed, "", "the session or agent is closed"},
	{CodeSessionBusy, Busy, "", "the session already has an active operation"},
	{CodeBudget, Limit, "Budget exhausted on ", "a budget guard said no"},
	{CodeSecurity, Denied, "Security error: ", "a boundary was crossed"},
	{CodeContext, Limit, "Context error: ", "the conversation does not fit the model's window"},
	{CodeIO, IO, "I/O error: ", "reading or writing failed"},
	{CodeSerialization, Invalid, "Serialization error: ", "stored data cannot be decoded"},
	{CodeInternal, Internal, "Internal error: ", "a fault of libA3S; please report it"},
	{CodeCancelled, Cancelled, "", "the run or call was cancelled"},
	{CodeInterrupted, Interrupted, "", "the process running it died; nothing was repeated"},
	{CodeTimeout, Timeout, "", "a time limit ran out"},
	{CodeForked, Forked, "", "the library does not work in a forked child: use spawn"},
	{CodeInvalidRequest, Invalid, "Invalid request: ", "a parameter is missing, wrong or unknown"},
	{CodeInvalidHandle, Handle, "", "the handle is zero, stale, of another kind or of another library"},
	{CodeBufferTooSmall, Buffer, "", "the buffer cannot hold the next event"},
	{CodeStreamEnd, End, "", "no event will follow"},
	{CodeWoken, Woken, "", "a blocked read was woken by a3s_stream_wake"},
	{CodeABI, ABI, "", "the library is older than the header or of another major version"},
	{CodeNotFound, NotFound, "", "no such thing"},
	{CodeAlreadyExists, Exists, "", "the name is taken"},
	{CodeConflict, Conflict, "", "it changed since it was read"},
	{CodeUnsupported, Unsupported, "", "this build or back-end cannot do it"},
}

type kindRow struct {
	status Status
	code   Code
}

type codeRow struct {
	kind   Kind
	prefix string
}

var kindTable, codeTable = tables()

func tables() (map[Kind]kindRow, map[Code]codeRow) {
	kinds, codes := map[Kind]kindRow{}, map[Code]codeRow{}
	for _, r := range Kinds {
		kinds[r.Kind] = kindRow{r.Status, r.Code}
	}
	for _, r := range Codes {
		codes[r.Code] = codeRow{r.Kind, r.Prefix}
	}
	return kinds, codes
}

// row falls back to Internal, so that a kind made by mistake still has a status.
func (k Kind) row() kindRow {
	if r, ok := kindTable[k]; ok {
		return r
	}
	return kindTable[Internal]
}

func (c Code) row() codeRow {
	if r, ok := codeTable[c]; ok {
		return r
	}
	return codeTable[CodeInternal]
}

// Kind is the default kind of c.
func (c Code) Kind() Kind { return c.row().kind }

// Status is the number that the C interface returns for k.
func (k Kind) Status() Status { return k.row().status }
