package a3s

// Info says what the session is.
func (s *Session) Info() SessionInfo { return s.s.Info() }

// ID is the session's id, for ResumeSession.
func (s *Session) ID() string { return s.s.ID() }

// Workspace is the root as an absolute path, or what a registered workspace is called.
func (s *Session) Workspace() string { return s.Info().Workspace }

// InitWarning says what went less well when the session was opened; nil if nothing did.
func (s *Session) InitWarning() *string { return given(s.Info().InitWarning) }

// IsClosed says whether the session or its agent was closed.
func (s *Session) IsClosed() bool { return s.Info().Closed }

// TenantID is the label of the options, or the one that was kept; nil if there is none.
func (s *Session) TenantID() *string { return given(s.Info().TenantID) }

// Principal is the label of the options, or the one that was kept; nil if there is none.
func (s *Session) Principal() *string { return given(s.Info().Principal) }

// AgentTemplateID is the label of the options, or the one that was kept; nil if there is
// none.
func (s *Session) AgentTemplateID() *string { return given(s.Info().AgentTemplateID) }

// CorrelationID is the label of the options, or the one that was kept; nil if there is
// none.
func (s *Session) CorrelationID() *string { return given(s.Info().CorrelationID) }

// given gives nil for what is absent.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
