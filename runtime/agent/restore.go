package agent

import (
	"cmp"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/record"
)

// data is the session's part of a snapshot as options and store say it; what the caller
// left unset comes back from the store (reference: contract 5.6).
func (b *builder) data(old *record.SessionData) record.SessionData {
	o := b.o
	labels := record.Labels{TenantID: or(o.TenantID, ""), Principal: or(o.Principal, ""), AgentTemplateID: or(o.AgentTemplateID, ""), CorrelationID: or(o.CorrelationID, "")}
	d := record.SessionData{ID: b.id, State: "Active", ModelName: or(o.Model, b.a.cfg.DefaultModel), ThinkingBudget: o.ThinkingBudget, Labels: labels}
	d.Config = record.SessionConfig{
		Workspace: b.ws.Root(), MaxContextLength: or(o.MaxContextTokens, 0), AutoCompact: or(o.AutoCompact, false),
		AutoCompactThreshold: or(o.AutoCompactThreshold, defaultThreshold), StorageType: b.storageType(),
		PlanningMode: or(o.PlanningMode, "auto"),
	}
	if o.PermissionPolicy != nil {
		d.Config.PermissionPolicy = raw(o.PermissionPolicy)
	}
	if o.ConfirmationPolicy != nil {
		d.Config.ConfirmationPolicy = raw(o.ConfirmationPolicy)
	}
	if old != nil {
		inherit(&d, *old, o)
	}
	return d
}

// inherit takes over from a kept session what the caller left unset, and what this
// version only hands on.
func inherit(d *record.SessionData, old record.SessionData, o *Options) {
	d.TenantID = cmp.Or(d.TenantID, old.TenantID)
	d.Principal = cmp.Or(d.Principal, old.Principal)
	d.AgentTemplateID = cmp.Or(d.AgentTemplateID, old.AgentTemplateID)
	d.CorrelationID = cmp.Or(d.CorrelationID, old.CorrelationID)
	d.ThinkingEnabled, d.ParentID = old.ThinkingEnabled, old.ParentID
	if d.ThinkingBudget == nil {
		d.ThinkingBudget = old.ThinkingBudget
	}
	if o.Model == nil {
		d.ModelName = cmp.Or(modelOf(old), d.ModelName)
		if o.MaxContextTokens == nil {
			d.Config.MaxContextLength = old.Config.MaxContextLength
		}
	}
	c, was := &d.Config, old.Config
	if o.PermissionPolicy == nil {
		c.PermissionPolicy = was.PermissionPolicy
	}
	if o.ConfirmationPolicy == nil {
		c.ConfirmationPolicy = was.ConfirmationPolicy
	}
	c.Name, c.ParentID, c.SystemPrompt, c.SecurityConfig, c.QueueConfig = was.Name, was.ParentID, was.SystemPrompt, was.SecurityConfig, was.QueueConfig
	c.AutoDelegation, c.MaxParallelTasks = was.AutoDelegation, was.MaxParallelTasks
	c.EnforceActiveSkillToolRestrictions, c.Extra = was.EnforceActiveSkillToolRestrictions, was.Extra
}

// modelOf names the model of a kept session as provider/model.
func modelOf(d record.SessionData) string {
	if c := d.LLMConfig; c != nil && c.Provider != "" && c.Model != "" {
		return c.Provider + "/" + c.Model
	}
	if strings.Contains(d.ModelName, "/") {
		return d.ModelName
	}
	return ""
}
