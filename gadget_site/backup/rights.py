"""The effect of a restore on each table: its rights are ended, its limits must be confirmed by an
admin, or it stays as it is.

A restore cannot know which rights were revoked or which limits were tightened since the backup. A
test fails for a table that is in none of the three lists.
"""

ENDED = frozenset(
    {
        "accounts.ApiToken",
        "accounts.Invitation",
        "accounts.PasswordReset",
        "approval_rules.Deputy",
        "approvals.Claim",
        "approvals.Vote",
        "gateway.AgentKey",
        "gateway.SigningKey",
        "schedules.Schedule",
        "sessions.Session",
        "standing_grants.StandingGrant",
        "triggers.Trigger",
        "webhooks.Webhook",
    }
)
"""Tables whose rows give access, or that decide or start something without a person. The restore
ends these rights."""

CONFIRMED = frozenset(
    {
        "accounts.Membership",
        "accounts.Organization",
        "approval_rules.ApprovalRule",
        "approval_rules.ApproverGroup",
        "approval_rules.ApproverGroup_members",
        "auth.User",
        "connections.AllowedHost",
        "connections.Source",
        "connections.SourceTool",
        "employees.Employee",
        "employees.Grant",
        "employees.ModelProvider",
        "employees.ToolRule",
    }
)
"""Tables whose rows limit people and employees: an admin confirms them
(agents/restores/limits.py)."""

WITHOUT_RIGHTS = {
    "admin.LogEntry": "a log",
    "auth.Group": "grants nothing: rights follow from memberships alone",
    "auth.Group_permissions": "grants nothing: rights follow from memberships alone",
    "auth.Permission": "grants nothing: rights follow from memberships alone",
    "auth.User_groups": "grants nothing: rights follow from memberships alone",
    "auth.User_user_permissions": "grants nothing: rights follow from memberships alone",
    "axes.AccessAttempt": "counts failed logins",
    "axes.AccessAttemptExpiration": "counts failed logins",
    "axes.AccessFailureLog": "a log",
    "axes.AccessLog": "a log",
    "contenttypes.ContentType": "names of tables",
    "platform.Installation": "compares processes",
    "platform.OldestSchema": "belongs to the tables",
    "platform.WriteProbe": "a probe",
    "accounts.AuditEntry": "a log",
    "accounts.AuditHead": "a log",
    "accounts.OrganizationEvent": "a log",
    "accounts.Preferences": "how pages and tools address a member",
    "accounts.Credential": "the service that it is for decides if it still works",
    "approvals.Approval": "open ones warn, and approved ones are asked again",
    "approvals.SavedView": "a filter of a list",
    "approvals.Snooze": "a filter of a list",
    "approvals.WithheldBulk": "withholds only calls of its own bulk, whose approved cards are asked again",
    "gateway.AgentRun": "works only with its key, which ends",
    "gateway.AgentSession": "works only with its key, which ends",
    "gateway.Ask": "works only with its key, which ends",
    "gateway.AskedEffect": "a name to lock",
    "gateway.RefusedAsk": "a log",
    "insight.DecisionFigures": "figures",
    "insight.DecisionHead": "figures",
    "insight.EmployeeFigures": "figures",
    "insight.EmployeeUse": "figures",
    "insight.FiguresHead": "figures",
    "insight.ToolFigures": "figures",
    "insight.TotalFigures": "figures",
    "insight.TotalUse": "figures",
    "notices.Channel": "notifies a member only of what that member may see",
    "notices.Delivery": "waiting ones are dropped",
    "notices.FollowedRun": "notifies a member only of what that member may see",
    "notices.Notice": "unsent ones are dropped",
    "notices.NoticeChoices": "notifies a member only of what that member may see",
    "notices.PushKey": "signs notifications of what a member may see",
    "policy.PolicyDraft": "changes nothing while it is a draft",
    "policy.PolicySnapshot": "a record of past rules",
    "policy.ShadowCard": "figures",
    "policy.ShadowVerdict": "figures",
    "readers.ReaderCursor": "a position in a log; the restore skips unsent facts",
    "records.Draft": "data",
    "records.Draft_records": "data",
    "records.ListEntry": "data",
    "records.Record": "data",
    "records.RecordChange": "data",
    "records.RecordList": "data",
    "restores.RestoredLimit": "written anew by each restore",
    "runs.Event": "a log",
    "runs.Message": "data",
    "runs.OutsideValue": "names where values came from",
    "runs.Pass": "data",
    "runs.Run": "starts nothing until the stop is lifted",
    "runs.ToolCall": "starts nothing without a new decision",
    "triggers.ReceivedMessage": "a log",
    "webhooks.WebhookDelivery": "waiting ones have failed",
    "webhooks.WebhookSecret": "signs only for its webhook, which is off",
}
"""Tables whose rows neither grant rights nor limit anything, each with the reason."""
