CREATE TABLE "django_migrations" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "app" varchar(255) NOT NULL, "name" varchar(255) NOT NULL, "applied" datetime NOT NULL);
-- migration contenttypes.0001_initial
--
-- Create model ContentType
--
CREATE TABLE "django_content_type" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(100) NOT NULL, "app_label" varchar(100) NOT NULL, "model" varchar(100) NOT NULL);
--
-- Alter unique_together for contenttype (1 constraint(s))
--
CREATE UNIQUE INDEX "django_content_type_app_label_model_76bd3d3b_uniq" ON "django_content_type" ("app_label", "model");
-- migration auth.0001_initial
--
-- Create model Permission
--
CREATE TABLE "auth_permission" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(50) NOT NULL, "content_type_id" integer NOT NULL REFERENCES "django_content_type" ("id") DEFERRABLE INITIALLY DEFERRED, "codename" varchar(100) NOT NULL);
--
-- Create model Group
--
CREATE TABLE "auth_group" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL UNIQUE);
CREATE TABLE "auth_group_permissions" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "group_id" integer NOT NULL REFERENCES "auth_group" ("id") DEFERRABLE INITIALLY DEFERRED, "permission_id" integer NOT NULL REFERENCES "auth_permission" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model User
--
CREATE TABLE "auth_user" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "password" varchar(128) NOT NULL, "last_login" datetime NOT NULL, "is_superuser" bool NOT NULL, "username" varchar(30) NOT NULL UNIQUE, "first_name" varchar(30) NOT NULL, "last_name" varchar(30) NOT NULL, "email" varchar(75) NOT NULL, "is_staff" bool NOT NULL, "is_active" bool NOT NULL, "date_joined" datetime NOT NULL);
CREATE TABLE "auth_user_groups" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "group_id" integer NOT NULL REFERENCES "auth_group" ("id") DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE "auth_user_user_permissions" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "permission_id" integer NOT NULL REFERENCES "auth_permission" ("id") DEFERRABLE INITIALLY DEFERRED);
CREATE UNIQUE INDEX "auth_permission_content_type_id_codename_01ab375a_uniq" ON "auth_permission" ("content_type_id", "codename");
CREATE INDEX "auth_permission_content_type_id_2f476e4b" ON "auth_permission" ("content_type_id");
CREATE UNIQUE INDEX "auth_group_permissions_group_id_permission_id_0cd325b0_uniq" ON "auth_group_permissions" ("group_id", "permission_id");
CREATE INDEX "auth_group_permissions_group_id_b120cbf9" ON "auth_group_permissions" ("group_id");
CREATE INDEX "auth_group_permissions_permission_id_84c5c92e" ON "auth_group_permissions" ("permission_id");
CREATE UNIQUE INDEX "auth_user_groups_user_id_group_id_94350c0c_uniq" ON "auth_user_groups" ("user_id", "group_id");
CREATE INDEX "auth_user_groups_user_id_6a12ed8b" ON "auth_user_groups" ("user_id");
CREATE INDEX "auth_user_groups_group_id_97559544" ON "auth_user_groups" ("group_id");
CREATE UNIQUE INDEX "auth_user_user_permissions_user_id_permission_id_14a6b632_uniq" ON "auth_user_user_permissions" ("user_id", "permission_id");
CREATE INDEX "auth_user_user_permissions_user_id_a95ead1b" ON "auth_user_user_permissions" ("user_id");
CREATE INDEX "auth_user_user_permissions_permission_id_1fbb5f2c" ON "auth_user_user_permissions" ("permission_id");
-- migration accounts.0001_initial
--
-- Create model Organization
--
CREATE TABLE "accounts_organization" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(120) NOT NULL, "slug" varchar(50) NOT NULL UNIQUE, "four_eyes" bool NOT NULL, "break_glass" bool NOT NULL, "break_glass_address" varchar(254) NOT NULL, "card_days" smallint unsigned NOT NULL CHECK ("card_days" >= 0), "confirm_count" smallint unsigned NOT NULL CHECK ("confirm_count" >= 0), "confirm_percent" smallint unsigned NOT NULL CHECK ("confirm_percent" >= 0), "plan_features" text NOT NULL CHECK ((JSON_VALID("plan_features") OR "plan_features" IS NULL)), "currency" varchar(3) NOT NULL, "month_tokens" bigint unsigned NULL CHECK ("month_tokens" >= 0), "month_cost" decimal NULL, "credentials_version" integer unsigned NOT NULL CHECK ("credentials_version" >= 0), "tools_version" integer unsigned NOT NULL CHECK ("tools_version" >= 0), "stopped_at" datetime NULL, "stopped_by" varchar(150) NOT NULL, "restored_at" datetime NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL);
--
-- Create model AuditHead
--
CREATE TABLE "accounts_audithead" ("organization_id" bigint NOT NULL PRIMARY KEY REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "seq" bigint unsigned NOT NULL CHECK ("seq" >= 0), "hash" varchar(64) NOT NULL);
--
-- Create model Membership
--
CREATE TABLE "accounts_membership" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "role" varchar(10) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model ApiToken
--
CREATE TABLE "accounts_apitoken" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "hash" varchar(64) NOT NULL UNIQUE, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "last_used_at" datetime NULL, "revoked_at" datetime NULL, "membership_id" bigint NOT NULL REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model OrganizationEvent
--
CREATE TABLE "accounts_organizationevent" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "type" varchar(24) NOT NULL, "payload" text NOT NULL CHECK ((JSON_VALID("payload") OR "payload" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model PasswordReset
--
CREATE TABLE "accounts_passwordreset" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "hash" varchar(64) NOT NULL UNIQUE, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "expires_at" datetime NOT NULL, "used_at" datetime NULL, "revoked_at" datetime NULL, "made_by_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "membership_id" bigint NOT NULL REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model Preferences
--
CREATE TABLE "accounts_preferences" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "language" varchar(35) NOT NULL, "units" varchar(10) NOT NULL, "membership_id" bigint NOT NULL UNIQUE REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model AuditEntry
--
CREATE TABLE "accounts_auditentry" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "seq" bigint unsigned NOT NULL CHECK ("seq" >= 0), "actor" varchar(200) NOT NULL, "action" varchar(60) NOT NULL, "subject" varchar(200) NOT NULL, "payload" text NOT NULL CHECK ((JSON_VALID("payload") OR "payload" IS NULL)), "previous_hash" varchar(64) NOT NULL, "hash" varchar(64) NOT NULL, "key_id" varchar(8) NOT NULL, "at" datetime NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "audit_seq_in_organization" UNIQUE ("organization_id", "seq"));
--
-- Create model Credential
--
CREATE TABLE "accounts_credential" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "service" varchar(80) NOT NULL, "fields" text NOT NULL, "changed_by" varchar(150) NOT NULL, "changed_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_credential_per_service" UNIQUE ("organization_id", "service"));
--
-- Create model Invitation
--
CREATE TABLE "accounts_invitation" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "role" varchar(10) NOT NULL, "note" varchar(120) NOT NULL, "address" text DEFAULT '' NOT NULL, "hash" varchar(64) NOT NULL UNIQUE, "tries" smallint unsigned NOT NULL CHECK ("tries" >= 0), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "expires_at" datetime NOT NULL, "accepted_at" datetime NULL, "revoked_at" datetime NULL, "accepted_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "made_by_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "invitation_role_is_known" CHECK ("role" IN ('viewer', 'operator', 'approver', 'admin')), CONSTRAINT "accepted_invitation_is_not_revoked" CHECK (("accepted_at" IS NULL OR "revoked_at" IS NULL)));
--
-- Create constraint one_membership_per_organization on model membership
--
CREATE TABLE "new__accounts_membership" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "role" varchar(10) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_membership_per_organization" UNIQUE ("organization_id", "user_id"));
INSERT INTO "new__accounts_membership" ("id", "role", "created_at", "organization_id", "user_id") SELECT "id", "role", "created_at", "organization_id", "user_id" FROM "accounts_membership";
DROP TABLE "accounts_membership";
ALTER TABLE "new__accounts_membership" RENAME TO "accounts_membership";
CREATE INDEX "accounts_apitoken_membership_id_c1bb9807" ON "accounts_apitoken" ("membership_id");
CREATE INDEX "accounts_passwordreset_made_by_id_5b39288b" ON "accounts_passwordreset" ("made_by_id");
CREATE INDEX "accounts_passwordreset_membership_id_04d7b065" ON "accounts_passwordreset" ("membership_id");
CREATE INDEX "audit_by_actor" ON "accounts_auditentry" ("organization_id", "actor", "seq");
CREATE INDEX "audit_by_action" ON "accounts_auditentry" ("organization_id", "action", "seq");
CREATE INDEX "audit_by_time" ON "accounts_auditentry" ("organization_id", "at", "seq");
CREATE INDEX "accounts_invitation_accepted_by_id_ba632539" ON "accounts_invitation" ("accepted_by_id");
CREATE INDEX "accounts_invitation_made_by_id_3eddde8f" ON "accounts_invitation" ("made_by_id");
CREATE INDEX "accounts_invitation_organization_id_2be75950" ON "accounts_invitation" ("organization_id");
CREATE INDEX "accounts_membership_organization_id_936776de" ON "accounts_membership" ("organization_id");
CREATE INDEX "accounts_membership_user_id_487fb39e" ON "accounts_membership" ("user_id");
--
-- Create constraint membership_role_is_known on model membership
--
CREATE TABLE "new__accounts_membership" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "role" varchar(10) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_membership_per_organization" UNIQUE ("organization_id", "user_id"), CONSTRAINT "membership_role_is_known" CHECK ("role" IN ('viewer', 'operator', 'approver', 'admin')));
INSERT INTO "new__accounts_membership" ("id", "role", "created_at", "organization_id", "user_id") SELECT "id", "role", "created_at", "organization_id", "user_id" FROM "accounts_membership";
DROP TABLE "accounts_membership";
ALTER TABLE "new__accounts_membership" RENAME TO "accounts_membership";
CREATE INDEX "accounts_membership_organization_id_936776de" ON "accounts_membership" ("organization_id");
CREATE INDEX "accounts_membership_user_id_487fb39e" ON "accounts_membership" ("user_id");
--
-- Create constraint preferred_units_are_known on model preferences
--
CREATE TABLE "new__accounts_preferences" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "language" varchar(35) NOT NULL, "units" varchar(10) NOT NULL, "membership_id" bigint NOT NULL UNIQUE REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "preferred_units_are_known" CHECK ("units" IN ('', 'metric', 'imperial')));
INSERT INTO "new__accounts_preferences" ("id", "language", "units", "membership_id") SELECT "id", "language", "units", "membership_id" FROM "accounts_preferences";
DROP TABLE "accounts_preferences";
ALTER TABLE "new__accounts_preferences" RENAME TO "accounts_preferences";
-- migration admin.0001_initial
--
-- Create model LogEntry
--
CREATE TABLE "django_admin_log" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "action_time" datetime NOT NULL, "object_id" text NULL, "object_repr" varchar(200) NOT NULL, "action_flag" smallint unsigned NOT NULL CHECK ("action_flag" >= 0), "change_message" text NOT NULL, "content_type_id" integer NULL REFERENCES "django_content_type" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
CREATE INDEX "django_admin_log_content_type_id_c4bce8eb" ON "django_admin_log" ("content_type_id");
CREATE INDEX "django_admin_log_user_id_c564eba6" ON "django_admin_log" ("user_id");
-- migration admin.0002_logentry_remove_auto_add
--
-- Alter field action_time on logentry
--
CREATE TABLE "new__django_admin_log" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "action_time" datetime NOT NULL, "object_id" text NULL, "object_repr" varchar(200) NOT NULL, "action_flag" smallint unsigned NOT NULL CHECK ("action_flag" >= 0), "change_message" text NOT NULL, "content_type_id" integer NULL REFERENCES "django_content_type" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "new__django_admin_log" ("id", "object_id", "object_repr", "action_flag", "change_message", "content_type_id", "user_id", "action_time") SELECT "id", "object_id", "object_repr", "action_flag", "change_message", "content_type_id", "user_id", "action_time" FROM "django_admin_log";
DROP TABLE "django_admin_log";
ALTER TABLE "new__django_admin_log" RENAME TO "django_admin_log";
CREATE INDEX "django_admin_log_content_type_id_c4bce8eb" ON "django_admin_log" ("content_type_id");
CREATE INDEX "django_admin_log_user_id_c564eba6" ON "django_admin_log" ("user_id");
-- migration admin.0003_logentry_add_action_flag_choices
--
-- Alter field action_flag on logentry
--
-- (no-op)
-- migration employees.0001_initial
--
-- Create model ModelProvider
--
CREATE TABLE "employees_modelprovider" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "kind" varchar(10) NOT NULL, "base_url" varchar(300) NOT NULL, "api_key" text NOT NULL, "prices" text NOT NULL CHECK ((JSON_VALID("prices") OR "prices" IS NULL)), "timeout_s" smallint unsigned NOT NULL CHECK ("timeout_s" >= 0), "answer_timeout_s" smallint unsigned DEFAULT 1800 NOT NULL CHECK ("answer_timeout_s" >= 0), "is_active" bool NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model Employee
--
CREATE TABLE "employees_employee" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "job_title" varchar(120) NOT NULL, "instructions" text NOT NULL, "mode" varchar(40) NOT NULL, "model" varchar(120) NOT NULL, "max_passes" smallint unsigned NOT NULL CHECK ("max_passes" >= 0), "temperature" real NULL, "max_tokens" integer unsigned NULL CHECK ("max_tokens" >= 0), "num_ctx" integer unsigned NULL CHECK ("num_ctx" >= 0), "extra_body" text NOT NULL CHECK ((JSON_VALID("extra_body") OR "extra_body" IS NULL)), "run_minutes" integer unsigned NULL CHECK ("run_minutes" >= 0), "run_tokens" integer unsigned NULL CHECK ("run_tokens" >= 0), "run_cost" decimal NULL, "month_tokens" bigint unsigned NULL CHECK ("month_tokens" >= 0), "month_cost" decimal NULL, "month_minutes" integer unsigned NULL CHECK ("month_minutes" >= 0), "context_tokens" integer unsigned NULL CHECK ("context_tokens" >= 0), "stopped_at" datetime NULL, "stopped_by" varchar(150) NOT NULL, "capabilities" text NOT NULL CHECK ((JSON_VALID("capabilities") OR "capabilities" IS NULL)), "example_tasks" text NOT NULL CHECK ((JSON_VALID("example_tasks") OR "example_tasks" IS NULL)), "is_active" bool NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "provider_id" bigint NOT NULL REFERENCES "employees_modelprovider" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model ToolRule
--
CREATE TABLE "employees_toolrule" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "tool" varchar(120) NOT NULL, "level" varchar(11) NOT NULL, "stopped_at" datetime NULL, "stopped_by" varchar(150) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model Grant
--
CREATE TABLE "employees_grant" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "tool" varchar(120) NOT NULL, "level" varchar(11) NOT NULL, "conditions" text NOT NULL CHECK ((JSON_VALID("conditions") OR "conditions" IS NULL)), "delegates" text NOT NULL CHECK ((JSON_VALID("delegates") OR "delegates" IS NULL)), "version" varchar(40) DEFAULT '' NOT NULL, "employee_id" bigint NOT NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_grant_per_tool" UNIQUE ("employee_id", "tool"), CONSTRAINT "grant_level_is_known" CHECK ("level" IN ('', 'read', 'draft', 'write', 'destructive')));
--
-- Create constraint one_provider_per_name on model modelprovider
--
CREATE TABLE "new__employees_modelprovider" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "kind" varchar(10) NOT NULL, "base_url" varchar(300) NOT NULL, "api_key" text NOT NULL, "prices" text NOT NULL CHECK ((JSON_VALID("prices") OR "prices" IS NULL)), "timeout_s" smallint unsigned NOT NULL CHECK ("timeout_s" >= 0), "answer_timeout_s" smallint unsigned DEFAULT 1800 NOT NULL CHECK ("answer_timeout_s" >= 0), "is_active" bool NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_provider_per_name" UNIQUE ("organization_id", "name"));
INSERT INTO "new__employees_modelprovider" ("id", "name", "kind", "base_url", "api_key", "prices", "timeout_s", "answer_timeout_s", "is_active", "organization_id") SELECT "id", "name", "kind", "base_url", "api_key", "prices", "timeout_s", "answer_timeout_s", "is_active", "organization_id" FROM "employees_modelprovider";
DROP TABLE "employees_modelprovider";
ALTER TABLE "new__employees_modelprovider" RENAME TO "employees_modelprovider";
CREATE INDEX "employees_employee_organization_id_0bcd33e0" ON "employees_employee" ("organization_id");
CREATE INDEX "employees_employee_provider_id_af18360b" ON "employees_employee" ("provider_id");
CREATE INDEX "employees_grant_employee_id_98e87f36" ON "employees_grant" ("employee_id");
CREATE INDEX "employees_modelprovider_organization_id_f5dcf18a" ON "employees_modelprovider" ("organization_id");
--
-- Create constraint provider_kind_is_known on model modelprovider
--
CREATE TABLE "new__employees_modelprovider" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "kind" varchar(10) NOT NULL, "base_url" varchar(300) NOT NULL, "api_key" text NOT NULL, "prices" text NOT NULL CHECK ((JSON_VALID("prices") OR "prices" IS NULL)), "timeout_s" smallint unsigned NOT NULL CHECK ("timeout_s" >= 0), "answer_timeout_s" smallint unsigned DEFAULT 1800 NOT NULL CHECK ("answer_timeout_s" >= 0), "is_active" bool NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_provider_per_name" UNIQUE ("organization_id", "name"), CONSTRAINT "provider_kind_is_known" CHECK ("kind" IN ('openai', 'ollama', 'scripted')));
INSERT INTO "new__employees_modelprovider" ("id", "name", "kind", "base_url", "api_key", "prices", "timeout_s", "answer_timeout_s", "is_active", "organization_id") SELECT "id", "name", "kind", "base_url", "api_key", "prices", "timeout_s", "answer_timeout_s", "is_active", "organization_id" FROM "employees_modelprovider";
DROP TABLE "employees_modelprovider";
ALTER TABLE "new__employees_modelprovider" RENAME TO "employees_modelprovider";
CREATE INDEX "employees_modelprovider_organization_id_f5dcf18a" ON "employees_modelprovider" ("organization_id");
--
-- Create constraint one_employee_per_name on model employee
--
CREATE TABLE "new__employees_employee" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "job_title" varchar(120) NOT NULL, "instructions" text NOT NULL, "mode" varchar(40) NOT NULL, "model" varchar(120) NOT NULL, "max_passes" smallint unsigned NOT NULL CHECK ("max_passes" >= 0), "temperature" real NULL, "max_tokens" integer unsigned NULL CHECK ("max_tokens" >= 0), "num_ctx" integer unsigned NULL CHECK ("num_ctx" >= 0), "extra_body" text NOT NULL CHECK ((JSON_VALID("extra_body") OR "extra_body" IS NULL)), "run_minutes" integer unsigned NULL CHECK ("run_minutes" >= 0), "run_tokens" integer unsigned NULL CHECK ("run_tokens" >= 0), "run_cost" decimal NULL, "month_tokens" bigint unsigned NULL CHECK ("month_tokens" >= 0), "month_cost" decimal NULL, "month_minutes" integer unsigned NULL CHECK ("month_minutes" >= 0), "context_tokens" integer unsigned NULL CHECK ("context_tokens" >= 0), "stopped_at" datetime NULL, "stopped_by" varchar(150) NOT NULL, "capabilities" text NOT NULL CHECK ((JSON_VALID("capabilities") OR "capabilities" IS NULL)), "example_tasks" text NOT NULL CHECK ((JSON_VALID("example_tasks") OR "example_tasks" IS NULL)), "is_active" bool NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "provider_id" bigint NOT NULL REFERENCES "employees_modelprovider" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_employee_per_name" UNIQUE ("organization_id", "name"));
INSERT INTO "new__employees_employee" ("id", "name", "job_title", "instructions", "mode", "model", "max_passes", "temperature", "max_tokens", "num_ctx", "extra_body", "run_minutes", "run_tokens", "run_cost", "month_tokens", "month_cost", "month_minutes", "context_tokens", "stopped_at", "stopped_by", "capabilities", "example_tasks", "is_active", "created_at", "organization_id", "provider_id") SELECT "id", "name", "job_title", "instructions", "mode", "model", "max_passes", "temperature", "max_tokens", "num_ctx", "extra_body", "run_minutes", "run_tokens", "run_cost", "month_tokens", "month_cost", "month_minutes", "context_tokens", "stopped_at", "stopped_by", "capabilities", "example_tasks", "is_active", "created_at", "organization_id", "provider_id" FROM "employees_employee";
DROP TABLE "employees_employee";
ALTER TABLE "new__employees_employee" RENAME TO "employees_employee";
CREATE INDEX "employees_employee_organization_id_0bcd33e0" ON "employees_employee" ("organization_id");
CREATE INDEX "employees_employee_provider_id_af18360b" ON "employees_employee" ("provider_id");
--
-- Create constraint employee_passes_1_to_100 on model employee
--
CREATE TABLE "new__employees_employee" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "job_title" varchar(120) NOT NULL, "instructions" text NOT NULL, "mode" varchar(40) NOT NULL, "model" varchar(120) NOT NULL, "max_passes" smallint unsigned NOT NULL CHECK ("max_passes" >= 0), "temperature" real NULL, "max_tokens" integer unsigned NULL CHECK ("max_tokens" >= 0), "num_ctx" integer unsigned NULL CHECK ("num_ctx" >= 0), "extra_body" text NOT NULL CHECK ((JSON_VALID("extra_body") OR "extra_body" IS NULL)), "run_minutes" integer unsigned NULL CHECK ("run_minutes" >= 0), "run_tokens" integer unsigned NULL CHECK ("run_tokens" >= 0), "run_cost" decimal NULL, "month_tokens" bigint unsigned NULL CHECK ("month_tokens" >= 0), "month_cost" decimal NULL, "month_minutes" integer unsigned NULL CHECK ("month_minutes" >= 0), "context_tokens" integer unsigned NULL CHECK ("context_tokens" >= 0), "stopped_at" datetime NULL, "stopped_by" varchar(150) NOT NULL, "capabilities" text NOT NULL CHECK ((JSON_VALID("capabilities") OR "capabilities" IS NULL)), "example_tasks" text NOT NULL CHECK ((JSON_VALID("example_tasks") OR "example_tasks" IS NULL)), "is_active" bool NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "provider_id" bigint NOT NULL REFERENCES "employees_modelprovider" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_employee_per_name" UNIQUE ("organization_id", "name"), CONSTRAINT "employee_passes_1_to_100" CHECK (("max_passes" >= 1 AND "max_passes" <= 100)));
INSERT INTO "new__employees_employee" ("id", "name", "job_title", "instructions", "mode", "model", "max_passes", "temperature", "max_tokens", "num_ctx", "extra_body", "run_minutes", "run_tokens", "run_cost", "month_tokens", "month_cost", "month_minutes", "context_tokens", "stopped_at", "stopped_by", "capabilities", "example_tasks", "is_active", "created_at", "organization_id", "provider_id") SELECT "id", "name", "job_title", "instructions", "mode", "model", "max_passes", "temperature", "max_tokens", "num_ctx", "extra_body", "run_minutes", "run_tokens", "run_cost", "month_tokens", "month_cost", "month_minutes", "context_tokens", "stopped_at", "stopped_by", "capabilities", "example_tasks", "is_active", "created_at", "organization_id", "provider_id" FROM "employees_employee";
DROP TABLE "employees_employee";
ALTER TABLE "new__employees_employee" RENAME TO "employees_employee";
CREATE INDEX "employees_employee_organization_id_0bcd33e0" ON "employees_employee" ("organization_id");
CREATE INDEX "employees_employee_provider_id_af18360b" ON "employees_employee" ("provider_id");
--
-- Create constraint employee_temperature_0_to_2 on model employee
--
CREATE TABLE "new__employees_employee" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "job_title" varchar(120) NOT NULL, "instructions" text NOT NULL, "mode" varchar(40) NOT NULL, "model" varchar(120) NOT NULL, "max_passes" smallint unsigned NOT NULL CHECK ("max_passes" >= 0), "temperature" real NULL, "max_tokens" integer unsigned NULL CHECK ("max_tokens" >= 0), "num_ctx" integer unsigned NULL CHECK ("num_ctx" >= 0), "extra_body" text NOT NULL CHECK ((JSON_VALID("extra_body") OR "extra_body" IS NULL)), "run_minutes" integer unsigned NULL CHECK ("run_minutes" >= 0), "run_tokens" integer unsigned NULL CHECK ("run_tokens" >= 0), "run_cost" decimal NULL, "month_tokens" bigint unsigned NULL CHECK ("month_tokens" >= 0), "month_cost" decimal NULL, "month_minutes" integer unsigned NULL CHECK ("month_minutes" >= 0), "context_tokens" integer unsigned NULL CHECK ("context_tokens" >= 0), "stopped_at" datetime NULL, "stopped_by" varchar(150) NOT NULL, "capabilities" text NOT NULL CHECK ((JSON_VALID("capabilities") OR "capabilities" IS NULL)), "example_tasks" text NOT NULL CHECK ((JSON_VALID("example_tasks") OR "example_tasks" IS NULL)), "is_active" bool NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "provider_id" bigint NOT NULL REFERENCES "employees_modelprovider" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_employee_per_name" UNIQUE ("organization_id", "name"), CONSTRAINT "employee_passes_1_to_100" CHECK (("max_passes" >= 1 AND "max_passes" <= 100)), CONSTRAINT "employee_temperature_0_to_2" CHECK (("temperature" >= 0.0 AND "temperature" <= 2.0)));
INSERT INTO "new__employees_employee" ("id", "name", "job_title", "instructions", "mode", "model", "max_passes", "temperature", "max_tokens", "num_ctx", "extra_body", "run_minutes", "run_tokens", "run_cost", "month_tokens", "month_cost", "month_minutes", "context_tokens", "stopped_at", "stopped_by", "capabilities", "example_tasks", "is_active", "created_at", "organization_id", "provider_id") SELECT "id", "name", "job_title", "instructions", "mode", "model", "max_passes", "temperature", "max_tokens", "num_ctx", "extra_body", "run_minutes", "run_tokens", "run_cost", "month_tokens", "month_cost", "month_minutes", "context_tokens", "stopped_at", "stopped_by", "capabilities", "example_tasks", "is_active", "created_at", "organization_id", "provider_id" FROM "employees_employee";
DROP TABLE "employees_employee";
ALTER TABLE "new__employees_employee" RENAME TO "employees_employee";
CREATE INDEX "employees_employee_organization_id_0bcd33e0" ON "employees_employee" ("organization_id");
CREATE INDEX "employees_employee_provider_id_af18360b" ON "employees_employee" ("provider_id");
--
-- Create constraint one_rule_per_tool on model toolrule
--
CREATE TABLE "new__employees_toolrule" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "tool" varchar(120) NOT NULL, "level" varchar(11) NOT NULL, "stopped_at" datetime NULL, "stopped_by" varchar(150) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_rule_per_tool" UNIQUE ("organization_id", "tool"));
INSERT INTO "new__employees_toolrule" ("id", "tool", "level", "stopped_at", "stopped_by", "organization_id") SELECT "id", "tool", "level", "stopped_at", "stopped_by", "organization_id" FROM "employees_toolrule";
DROP TABLE "employees_toolrule";
ALTER TABLE "new__employees_toolrule" RENAME TO "employees_toolrule";
--
-- Create constraint rule_level_is_known on model toolrule
--
CREATE TABLE "new__employees_toolrule" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "tool" varchar(120) NOT NULL, "level" varchar(11) NOT NULL, "stopped_at" datetime NULL, "stopped_by" varchar(150) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_rule_per_tool" UNIQUE ("organization_id", "tool"), CONSTRAINT "rule_level_is_known" CHECK ("level" IN ('', 'read', 'draft', 'write', 'destructive')));
INSERT INTO "new__employees_toolrule" ("id", "tool", "level", "stopped_at", "stopped_by", "organization_id") SELECT "id", "tool", "level", "stopped_at", "stopped_by", "organization_id" FROM "employees_toolrule";
DROP TABLE "employees_toolrule";
ALTER TABLE "new__employees_toolrule" RENAME TO "employees_toolrule";
-- migration approval_rules.0001_initial
--
-- Create model ApproverGroup
--
CREATE TABLE "approval_rules_approvergroup" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(60) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE "approval_rules_approvergroup_members" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "approvergroup_id" bigint NOT NULL REFERENCES "approval_rules_approvergroup" ("id") DEFERRABLE INITIALLY DEFERRED, "membership_id" bigint NOT NULL REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model ApprovalRule
--
CREATE TABLE "approval_rules_approvalrule" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "tool" varchar(120) NOT NULL, "category" varchar(120) NOT NULL, "level" varchar(12) NOT NULL, "conditions" text NOT NULL CHECK ((JSON_VALID("conditions") OR "conditions" IS NULL)), "needed" smallint unsigned NOT NULL CHECK ("needed" >= 0), "excludes_requesters" bool NOT NULL, "escalate_hours" smallint unsigned NULL CHECK ("escalate_hours" >= 0), "is_active" bool NOT NULL, "employee_id" bigint NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "group_id" bigint NULL REFERENCES "approval_rules_approvergroup" ("id") DEFERRABLE INITIALLY DEFERRED, "second_group_id" bigint NULL REFERENCES "approval_rules_approvergroup" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model Deputy
--
CREATE TABLE "approval_rules_deputy" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "starts_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "ends_at" datetime NOT NULL, "deputy_id" bigint NOT NULL REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED, "member_id" bigint NOT NULL REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create constraint group_names_are_unique on model approvergroup
--
CREATE TABLE "new__approval_rules_approvergroup" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(60) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "group_names_are_unique" UNIQUE ("organization_id", "name"));
INSERT INTO "new__approval_rules_approvergroup" ("id", "name", "organization_id") SELECT "id", "name", "organization_id" FROM "approval_rules_approvergroup";
DROP TABLE "approval_rules_approvergroup";
ALTER TABLE "new__approval_rules_approvergroup" RENAME TO "approval_rules_approvergroup";
CREATE UNIQUE INDEX "approval_rules_approvergroup_members_approvergroup_id_membership_id_4286603a_uniq" ON "approval_rules_approvergroup_members" ("approvergroup_id", "membership_id");
CREATE INDEX "approval_rules_approvergroup_members_approvergroup_id_c60e9caf" ON "approval_rules_approvergroup_members" ("approvergroup_id");
CREATE INDEX "approval_rules_approvergroup_members_membership_id_25c5b00e" ON "approval_rules_approvergroup_members" ("membership_id");
CREATE INDEX "approval_rules_approvalrule_employee_id_7c1ffecf" ON "approval_rules_approvalrule" ("employee_id");
CREATE INDEX "approval_rules_approvalrule_organization_id_8709b2f1" ON "approval_rules_approvalrule" ("organization_id");
CREATE INDEX "approval_rules_approvalrule_group_id_ae24c1d3" ON "approval_rules_approvalrule" ("group_id");
CREATE INDEX "approval_rules_approvalrule_second_group_id_b1d0ae18" ON "approval_rules_approvalrule" ("second_group_id");
CREATE INDEX "approval_rules_deputy_deputy_id_d2515bac" ON "approval_rules_deputy" ("deputy_id");
CREATE INDEX "approval_rules_deputy_member_id_453626fa" ON "approval_rules_deputy" ("member_id");
CREATE INDEX "approval_rules_approvergroup_organization_id_29c1dd92" ON "approval_rules_approvergroup" ("organization_id");
--
-- Create constraint rule_names_are_unique on model approvalrule
--
CREATE TABLE "new__approval_rules_approvalrule" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "tool" varchar(120) NOT NULL, "category" varchar(120) NOT NULL, "level" varchar(12) NOT NULL, "conditions" text NOT NULL CHECK ((JSON_VALID("conditions") OR "conditions" IS NULL)), "needed" smallint unsigned NOT NULL CHECK ("needed" >= 0), "excludes_requesters" bool NOT NULL, "escalate_hours" smallint unsigned NULL CHECK ("escalate_hours" >= 0), "is_active" bool NOT NULL, "employee_id" bigint NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "group_id" bigint NULL REFERENCES "approval_rules_approvergroup" ("id") DEFERRABLE INITIALLY DEFERRED, "second_group_id" bigint NULL REFERENCES "approval_rules_approvergroup" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "rule_names_are_unique" UNIQUE ("organization_id", "name"));
INSERT INTO "new__approval_rules_approvalrule" ("id", "name", "tool", "category", "level", "conditions", "needed", "excludes_requesters", "escalate_hours", "is_active", "employee_id", "organization_id", "group_id", "second_group_id") SELECT "id", "name", "tool", "category", "level", "conditions", "needed", "excludes_requesters", "escalate_hours", "is_active", "employee_id", "organization_id", "group_id", "second_group_id" FROM "approval_rules_approvalrule";
DROP TABLE "approval_rules_approvalrule";
ALTER TABLE "new__approval_rules_approvalrule" RENAME TO "approval_rules_approvalrule";
CREATE INDEX "approval_rules_approvalrule_employee_id_7c1ffecf" ON "approval_rules_approvalrule" ("employee_id");
CREATE INDEX "approval_rules_approvalrule_organization_id_8709b2f1" ON "approval_rules_approvalrule" ("organization_id");
CREATE INDEX "approval_rules_approvalrule_group_id_ae24c1d3" ON "approval_rules_approvalrule" ("group_id");
CREATE INDEX "approval_rules_approvalrule_second_group_id_b1d0ae18" ON "approval_rules_approvalrule" ("second_group_id");
--
-- Create constraint rule_needs_1_to_10_people on model approvalrule
--
CREATE TABLE "new__approval_rules_approvalrule" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "tool" varchar(120) NOT NULL, "category" varchar(120) NOT NULL, "level" varchar(12) NOT NULL, "conditions" text NOT NULL CHECK ((JSON_VALID("conditions") OR "conditions" IS NULL)), "needed" smallint unsigned NOT NULL CHECK ("needed" >= 0), "excludes_requesters" bool NOT NULL, "escalate_hours" smallint unsigned NULL CHECK ("escalate_hours" >= 0), "is_active" bool NOT NULL, "employee_id" bigint NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "group_id" bigint NULL REFERENCES "approval_rules_approvergroup" ("id") DEFERRABLE INITIALLY DEFERRED, "second_group_id" bigint NULL REFERENCES "approval_rules_approvergroup" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "rule_names_are_unique" UNIQUE ("organization_id", "name"), CONSTRAINT "rule_needs_1_to_10_people" CHECK (("needed" >= 1 AND "needed" <= 10)));
INSERT INTO "new__approval_rules_approvalrule" ("id", "name", "tool", "category", "level", "conditions", "needed", "excludes_requesters", "escalate_hours", "is_active", "employee_id", "organization_id", "group_id", "second_group_id") SELECT "id", "name", "tool", "category", "level", "conditions", "needed", "excludes_requesters", "escalate_hours", "is_active", "employee_id", "organization_id", "group_id", "second_group_id" FROM "approval_rules_approvalrule";
DROP TABLE "approval_rules_approvalrule";
ALTER TABLE "new__approval_rules_approvalrule" RENAME TO "approval_rules_approvalrule";
CREATE INDEX "approval_rules_approvalrule_employee_id_7c1ffecf" ON "approval_rules_approvalrule" ("employee_id");
CREATE INDEX "approval_rules_approvalrule_organization_id_8709b2f1" ON "approval_rules_approvalrule" ("organization_id");
CREATE INDEX "approval_rules_approvalrule_group_id_ae24c1d3" ON "approval_rules_approvalrule" ("group_id");
CREATE INDEX "approval_rules_approvalrule_second_group_id_b1d0ae18" ON "approval_rules_approvalrule" ("second_group_id");
--
-- Create constraint level_of_approval_rule_is_known on model approvalrule
--
CREATE TABLE "new__approval_rules_approvalrule" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "tool" varchar(120) NOT NULL, "category" varchar(120) NOT NULL, "level" varchar(12) NOT NULL, "conditions" text NOT NULL CHECK ((JSON_VALID("conditions") OR "conditions" IS NULL)), "needed" smallint unsigned NOT NULL CHECK ("needed" >= 0), "excludes_requesters" bool NOT NULL, "escalate_hours" smallint unsigned NULL CHECK ("escalate_hours" >= 0), "is_active" bool NOT NULL, "employee_id" bigint NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "group_id" bigint NULL REFERENCES "approval_rules_approvergroup" ("id") DEFERRABLE INITIALLY DEFERRED, "second_group_id" bigint NULL REFERENCES "approval_rules_approvergroup" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "rule_names_are_unique" UNIQUE ("organization_id", "name"), CONSTRAINT "rule_needs_1_to_10_people" CHECK (("needed" >= 1 AND "needed" <= 10)), CONSTRAINT "level_of_approval_rule_is_known" CHECK ("level" IN ('', 'read', 'draft', 'write', 'destructive')));
INSERT INTO "new__approval_rules_approvalrule" ("id", "name", "tool", "category", "level", "conditions", "needed", "excludes_requesters", "escalate_hours", "is_active", "employee_id", "organization_id", "group_id", "second_group_id") SELECT "id", "name", "tool", "category", "level", "conditions", "needed", "excludes_requesters", "escalate_hours", "is_active", "employee_id", "organization_id", "group_id", "second_group_id" FROM "approval_rules_approvalrule";
DROP TABLE "approval_rules_approvalrule";
ALTER TABLE "new__approval_rules_approvalrule" RENAME TO "approval_rules_approvalrule";
CREATE INDEX "approval_rules_approvalrule_employee_id_7c1ffecf" ON "approval_rules_approvalrule" ("employee_id");
CREATE INDEX "approval_rules_approvalrule_organization_id_8709b2f1" ON "approval_rules_approvalrule" ("organization_id");
CREATE INDEX "approval_rules_approvalrule_group_id_ae24c1d3" ON "approval_rules_approvalrule" ("group_id");
CREATE INDEX "approval_rules_approvalrule_second_group_id_b1d0ae18" ON "approval_rules_approvalrule" ("second_group_id");
--
-- Create constraint escalation_has_a_time_and_two_groups on model approvalrule
--
CREATE TABLE "new__approval_rules_approvalrule" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "tool" varchar(120) NOT NULL, "category" varchar(120) NOT NULL, "level" varchar(12) NOT NULL, "conditions" text NOT NULL CHECK ((JSON_VALID("conditions") OR "conditions" IS NULL)), "needed" smallint unsigned NOT NULL CHECK ("needed" >= 0), "excludes_requesters" bool NOT NULL, "escalate_hours" smallint unsigned NULL CHECK ("escalate_hours" >= 0), "is_active" bool NOT NULL, "employee_id" bigint NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "group_id" bigint NULL REFERENCES "approval_rules_approvergroup" ("id") DEFERRABLE INITIALLY DEFERRED, "second_group_id" bigint NULL REFERENCES "approval_rules_approvergroup" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "rule_names_are_unique" UNIQUE ("organization_id", "name"), CONSTRAINT "rule_needs_1_to_10_people" CHECK (("needed" >= 1 AND "needed" <= 10)), CONSTRAINT "level_of_approval_rule_is_known" CHECK ("level" IN ('', 'read', 'draft', 'write', 'destructive')), CONSTRAINT "escalation_has_a_time_and_two_groups" CHECK ((("escalate_hours" IS NULL AND "second_group_id" IS NULL) OR ("escalate_hours" IS NOT NULL AND "group_id" IS NOT NULL AND "second_group_id" IS NOT NULL))));
INSERT INTO "new__approval_rules_approvalrule" ("id", "name", "tool", "category", "level", "conditions", "needed", "excludes_requesters", "escalate_hours", "is_active", "employee_id", "organization_id", "group_id", "second_group_id") SELECT "id", "name", "tool", "category", "level", "conditions", "needed", "excludes_requesters", "escalate_hours", "is_active", "employee_id", "organization_id", "group_id", "second_group_id" FROM "approval_rules_approvalrule";
DROP TABLE "approval_rules_approvalrule";
ALTER TABLE "new__approval_rules_approvalrule" RENAME TO "approval_rules_approvalrule";
CREATE INDEX "approval_rules_approvalrule_employee_id_7c1ffecf" ON "approval_rules_approvalrule" ("employee_id");
CREATE INDEX "approval_rules_approvalrule_organization_id_8709b2f1" ON "approval_rules_approvalrule" ("organization_id");
CREATE INDEX "approval_rules_approvalrule_group_id_ae24c1d3" ON "approval_rules_approvalrule" ("group_id");
CREATE INDEX "approval_rules_approvalrule_second_group_id_b1d0ae18" ON "approval_rules_approvalrule" ("second_group_id");
--
-- Create constraint nobody_is_their_own_deputy on model deputy
--
CREATE TABLE "new__approval_rules_deputy" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "starts_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "ends_at" datetime NOT NULL, "deputy_id" bigint NOT NULL REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED, "member_id" bigint NOT NULL REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "nobody_is_their_own_deputy" CHECK (NOT ("member_id" = ("deputy_id"))));
INSERT INTO "new__approval_rules_deputy" ("id", "starts_at", "ends_at", "deputy_id", "member_id") SELECT "id", "starts_at", "ends_at", "deputy_id", "member_id" FROM "approval_rules_deputy";
DROP TABLE "approval_rules_deputy";
ALTER TABLE "new__approval_rules_deputy" RENAME TO "approval_rules_deputy";
CREATE INDEX "approval_rules_deputy_deputy_id_d2515bac" ON "approval_rules_deputy" ("deputy_id");
CREATE INDEX "approval_rules_deputy_member_id_453626fa" ON "approval_rules_deputy" ("member_id");
--
-- Create constraint deputy_has_a_time on model deputy
--
CREATE TABLE "new__approval_rules_deputy" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "starts_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "ends_at" datetime NOT NULL, "deputy_id" bigint NOT NULL REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED, "member_id" bigint NOT NULL REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "nobody_is_their_own_deputy" CHECK (NOT ("member_id" = ("deputy_id"))), CONSTRAINT "deputy_has_a_time" CHECK ("ends_at" > ("starts_at")));
INSERT INTO "new__approval_rules_deputy" ("id", "starts_at", "ends_at", "deputy_id", "member_id") SELECT "id", "starts_at", "ends_at", "deputy_id", "member_id" FROM "approval_rules_deputy";
DROP TABLE "approval_rules_deputy";
ALTER TABLE "new__approval_rules_deputy" RENAME TO "approval_rules_deputy";
CREATE INDEX "approval_rules_deputy_deputy_id_d2515bac" ON "approval_rules_deputy" ("deputy_id");
CREATE INDEX "approval_rules_deputy_member_id_453626fa" ON "approval_rules_deputy" ("member_id");
-- migration runs.0001_initial
--
-- Create model Run
--
CREATE TABLE "runs_run" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "origin" varchar(10) NOT NULL, "depth" smallint unsigned NOT NULL CHECK ("depth" >= 0), "client_request_id" varchar(200) NOT NULL, "correlation_id" varchar(64) DEFAULT '' NOT NULL, "title" varchar(200) NOT NULL, "task" text NOT NULL, "mode" varchar(40) NOT NULL, "status" varchar(16) NOT NULL, "exit_reason" varchar(24) NOT NULL, "outcome" varchar(16) NOT NULL, "answer" text NOT NULL, "problem" text NOT NULL, "stopped_because" varchar(300) NOT NULL, "session" text NOT NULL CHECK ((JSON_VALID("session") OR "session" IS NULL)), "lease_owner" varchar(64) NOT NULL, "lease_epoch" integer unsigned NOT NULL CHECK ("lease_epoch" >= 0), "lease_expires_at" datetime NULL, "next_wake_at" datetime NULL, "hinted_at" datetime NULL, "cancel_requested_at" datetime NULL, "deadline_at" datetime NULL, "patience_since" datetime NULL, "patience_tries" smallint unsigned NOT NULL CHECK ("patience_tries" >= 0), "crash_count" smallint unsigned NOT NULL CHECK ("crash_count" >= 0), "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "asked_pass" smallint unsigned NOT NULL CHECK ("asked_pass" >= 0), "max_passes" smallint unsigned NOT NULL CHECK ("max_passes" >= 0), "next_event_seq" integer unsigned NOT NULL CHECK ("next_event_seq" >= 0), "messages_heard" integer unsigned NOT NULL CHECK ("messages_heard" >= 0), "message_count" integer unsigned NOT NULL CHECK ("message_count" >= 0), "input_tokens" integer unsigned NOT NULL CHECK ("input_tokens" >= 0), "output_tokens" integer unsigned NOT NULL CHECK ("output_tokens" >= 0), "cost_micros" bigint unsigned NOT NULL CHECK ("cost_micros" >= 0), "estimated_tokens" integer unsigned NOT NULL CHECK ("estimated_tokens" >= 0), "unusable_ms" integer unsigned DEFAULT 0 NOT NULL CHECK ("unusable_ms" >= 0), "kept_answer" text NULL CHECK ((JSON_VALID("kept_answer") OR "kept_answer" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "started_at" datetime NULL, "finished_at" datetime NULL, "created_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "employee_id" bigint NOT NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_id" bigint NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model ToolCall
--
CREATE TABLE "runs_toolcall" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "index" smallint unsigned NOT NULL CHECK ("index" >= 0), "provider_call_id" varchar(200) NOT NULL, "tool" varchar(120) NOT NULL, "version" varchar(40) NOT NULL, "definition_hash" varchar(64) NOT NULL, "level" varchar(12) NOT NULL, "model_params" text NULL CHECK ((JSON_VALID("model_params") OR "model_params" IS NULL)), "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "params_hash" varchar(64) NOT NULL, "signature" varchar(64) NOT NULL, "idempotency_key" varchar(64) NOT NULL, "status" varchar(20) NOT NULL, "why" text NOT NULL, "judgment" text NULL CHECK ((JSON_VALID("judgment") OR "judgment" IS NULL)), "provenance" text NULL CHECK ((JSON_VALID("provenance") OR "provenance" IS NULL)), "exec_epoch" integer unsigned NULL CHECK ("exec_epoch" >= 0), "attempts" smallint unsigned NOT NULL CHECK ("attempts" >= 0), "drifts" smallint unsigned NOT NULL CHECK ("drifts" >= 0), "started_at" datetime NULL, "finished_at" datetime NULL, "finished_seq" integer unsigned NULL CHECK ("finished_seq" >= 0), "deadline_at" datetime NULL, "duration_ms" integer unsigned NULL CHECK ("duration_ms" >= 0), "result" text NULL CHECK ((JSON_VALID("result") OR "result" IS NULL)), "content" text NOT NULL, "late_effect" text NULL CHECK ((JSON_VALID("late_effect") OR "late_effect" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "duplicate_of_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_call_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Add field parent_call to run
--
CREATE TABLE "new__runs_run" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "origin" varchar(10) NOT NULL, "depth" smallint unsigned NOT NULL CHECK ("depth" >= 0), "client_request_id" varchar(200) NOT NULL, "correlation_id" varchar(64) DEFAULT '' NOT NULL, "title" varchar(200) NOT NULL, "task" text NOT NULL, "mode" varchar(40) NOT NULL, "status" varchar(16) NOT NULL, "exit_reason" varchar(24) NOT NULL, "outcome" varchar(16) NOT NULL, "answer" text NOT NULL, "problem" text NOT NULL, "stopped_because" varchar(300) NOT NULL, "session" text NOT NULL CHECK ((JSON_VALID("session") OR "session" IS NULL)), "lease_owner" varchar(64) NOT NULL, "lease_epoch" integer unsigned NOT NULL CHECK ("lease_epoch" >= 0), "lease_expires_at" datetime NULL, "next_wake_at" datetime NULL, "hinted_at" datetime NULL, "cancel_requested_at" datetime NULL, "deadline_at" datetime NULL, "patience_since" datetime NULL, "patience_tries" smallint unsigned NOT NULL CHECK ("patience_tries" >= 0), "crash_count" smallint unsigned NOT NULL CHECK ("crash_count" >= 0), "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "asked_pass" smallint unsigned NOT NULL CHECK ("asked_pass" >= 0), "max_passes" smallint unsigned NOT NULL CHECK ("max_passes" >= 0), "next_event_seq" integer unsigned NOT NULL CHECK ("next_event_seq" >= 0), "messages_heard" integer unsigned NOT NULL CHECK ("messages_heard" >= 0), "message_count" integer unsigned NOT NULL CHECK ("message_count" >= 0), "input_tokens" integer unsigned NOT NULL CHECK ("input_tokens" >= 0), "output_tokens" integer unsigned NOT NULL CHECK ("output_tokens" >= 0), "cost_micros" bigint unsigned NOT NULL CHECK ("cost_micros" >= 0), "estimated_tokens" integer unsigned NOT NULL CHECK ("estimated_tokens" >= 0), "unusable_ms" integer unsigned DEFAULT 0 NOT NULL CHECK ("unusable_ms" >= 0), "kept_answer" text NULL CHECK ((JSON_VALID("kept_answer") OR "kept_answer" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "started_at" datetime NULL, "finished_at" datetime NULL, "created_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "employee_id" bigint NOT NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_call_id" bigint NULL UNIQUE REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_id" bigint NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "new__runs_run" ("id", "origin", "depth", "client_request_id", "correlation_id", "title", "task", "mode", "status", "exit_reason", "outcome", "answer", "problem", "stopped_because", "session", "lease_owner", "lease_epoch", "lease_expires_at", "next_wake_at", "hinted_at", "cancel_requested_at", "deadline_at", "patience_since", "patience_tries", "crash_count", "pass_number", "asked_pass", "max_passes", "next_event_seq", "messages_heard", "message_count", "input_tokens", "output_tokens", "cost_micros", "estimated_tokens", "unusable_ms", "kept_answer", "created_at", "started_at", "finished_at", "created_by_id", "employee_id", "organization_id", "parent_id", "parent_call_id") SELECT "id", "origin", "depth", "client_request_id", "correlation_id", "title", "task", "mode", "status", "exit_reason", "outcome", "answer", "problem", "stopped_because", "session", "lease_owner", "lease_epoch", "lease_expires_at", "next_wake_at", "hinted_at", "cancel_requested_at", "deadline_at", "patience_since", "patience_tries", "crash_count", "pass_number", "asked_pass", "max_passes", "next_event_seq", "messages_heard", "message_count", "input_tokens", "output_tokens", "cost_micros", "estimated_tokens", "unusable_ms", "kept_answer", "created_at", "started_at", "finished_at", "created_by_id", "employee_id", "organization_id", "parent_id", NULL FROM "runs_run";
DROP TABLE "runs_run";
ALTER TABLE "new__runs_run" RENAME TO "runs_run";
CREATE INDEX "runs_run_created_by_id_f5dec0c1" ON "runs_run" ("created_by_id");
CREATE INDEX "runs_run_employee_id_22a12c15" ON "runs_run" ("employee_id");
CREATE INDEX "runs_run_parent_id_8594b290" ON "runs_run" ("parent_id");
--
-- Create model OutsideValue
--
CREATE TABLE "runs_outsidevalue" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "key" varchar(32) NOT NULL, "param" varchar(200) NOT NULL, "title" varchar(200) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "call_id" bigint NOT NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model Pass
--
CREATE TABLE "runs_pass" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "number" smallint unsigned NOT NULL CHECK ("number" >= 0), "response" text NOT NULL CHECK ((JSON_VALID("response") OR "response" IS NULL)), "text" text NOT NULL, "thought" text NOT NULL, "cut_off" varchar(16) NOT NULL, "messages_upto" integer unsigned NOT NULL CHECK ("messages_upto" >= 0), "closing" bool NOT NULL, "snapshot" varchar(64) NOT NULL, "input_tokens" integer unsigned NOT NULL CHECK ("input_tokens" >= 0), "output_tokens" integer unsigned NOT NULL CHECK ("output_tokens" >= 0), "cached_tokens" integer unsigned DEFAULT 0 NOT NULL CHECK ("cached_tokens" >= 0), "cost_micros" bigint unsigned NOT NULL CHECK ("cost_micros" >= 0), "usage_estimated" bool NOT NULL, "duration_ms" integer unsigned NOT NULL CHECK ("duration_ms" >= 0), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "pass_number_in_run" UNIQUE ("run_id", "number"));
--
-- Create model Message
--
CREATE TABLE "runs_message" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "number" integer unsigned NOT NULL CHECK ("number" >= 0), "text" text NOT NULL, "client_message_id" varchar(200) DEFAULT '' NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "author_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "message_number_in_run" UNIQUE ("run_id", "number"));
--
-- Create model Event
--
CREATE TABLE "runs_event" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "seq" integer unsigned NOT NULL CHECK ("seq" >= 0), "type" varchar(24) NOT NULL, "payload" text NOT NULL CHECK ((JSON_VALID("payload") OR "payload" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "event_seq_in_run" UNIQUE ("run_id", "seq"));
--
-- Create index calls_by_time on field(s) organization, created_at of model toolcall
--
CREATE INDEX "calls_by_time" ON "runs_toolcall" ("organization_id", "created_at");
--
-- Create index calls_by_start on field(s) organization, tool, started_at of model toolcall
--
CREATE INDEX "calls_by_start" ON "runs_toolcall" ("organization_id", "tool", "started_at") WHERE "started_at" IS NOT NULL;
--
-- Create index calls_doubled on field(s) duplicate_of of model toolcall
--
CREATE INDEX "calls_doubled" ON "runs_toolcall" ("duplicate_of_id") WHERE "duplicate_of_id" IS NOT NULL;
--
-- Create index calls_of_calls on field(s) parent_call of model toolcall
--
CREATE INDEX "calls_of_calls" ON "runs_toolcall" ("parent_call_id") WHERE "parent_call_id" IS NOT NULL;
--
-- Create index calls_executing on field(s) deadline_at of model toolcall
--
CREATE INDEX "calls_executing" ON "runs_toolcall" ("deadline_at") WHERE "status" = 'executing';
--
-- Create index calls_open on field(s) run of model toolcall
--
CREATE INDEX "calls_open" ON "runs_toolcall" ("run_id") WHERE NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate'));
--
-- Create constraint idempotency_key_once on model toolcall
--
CREATE TABLE "new__runs_toolcall" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "index" smallint unsigned NOT NULL CHECK ("index" >= 0), "provider_call_id" varchar(200) NOT NULL, "tool" varchar(120) NOT NULL, "version" varchar(40) NOT NULL, "definition_hash" varchar(64) NOT NULL, "level" varchar(12) NOT NULL, "model_params" text NULL CHECK ((JSON_VALID("model_params") OR "model_params" IS NULL)), "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "params_hash" varchar(64) NOT NULL, "signature" varchar(64) NOT NULL, "idempotency_key" varchar(64) NOT NULL, "status" varchar(20) NOT NULL, "why" text NOT NULL, "judgment" text NULL CHECK ((JSON_VALID("judgment") OR "judgment" IS NULL)), "provenance" text NULL CHECK ((JSON_VALID("provenance") OR "provenance" IS NULL)), "exec_epoch" integer unsigned NULL CHECK ("exec_epoch" >= 0), "attempts" smallint unsigned NOT NULL CHECK ("attempts" >= 0), "drifts" smallint unsigned NOT NULL CHECK ("drifts" >= 0), "started_at" datetime NULL, "finished_at" datetime NULL, "finished_seq" integer unsigned NULL CHECK ("finished_seq" >= 0), "deadline_at" datetime NULL, "duration_ms" integer unsigned NULL CHECK ("duration_ms" >= 0), "result" text NULL CHECK ((JSON_VALID("result") OR "result" IS NULL)), "content" text NOT NULL, "late_effect" text NULL CHECK ((JSON_VALID("late_effect") OR "late_effect" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "duplicate_of_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_call_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "idempotency_key_once" UNIQUE ("idempotency_key"));
INSERT INTO "new__runs_toolcall" ("id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id") SELECT "id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id" FROM "runs_toolcall";
DROP TABLE "runs_toolcall";
ALTER TABLE "new__runs_toolcall" RENAME TO "runs_toolcall";
CREATE INDEX "runs_outsidevalue_call_id_2e806353" ON "runs_outsidevalue" ("call_id");
CREATE UNIQUE INDEX "message_client_id_in_run" ON "runs_message" ("run_id", "client_message_id") WHERE NOT ("client_message_id" = '');
CREATE INDEX "runs_message_author_id_d57111bb" ON "runs_message" ("author_id");
CREATE INDEX "calls_by_time" ON "runs_toolcall" ("organization_id", "created_at");
CREATE INDEX "calls_by_start" ON "runs_toolcall" ("organization_id", "tool", "started_at") WHERE "started_at" IS NOT NULL;
CREATE INDEX "calls_doubled" ON "runs_toolcall" ("duplicate_of_id") WHERE "duplicate_of_id" IS NOT NULL;
CREATE INDEX "calls_of_calls" ON "runs_toolcall" ("parent_call_id") WHERE "parent_call_id" IS NOT NULL;
CREATE INDEX "calls_executing" ON "runs_toolcall" ("deadline_at") WHERE "status" = 'executing';
CREATE INDEX "calls_open" ON "runs_toolcall" ("run_id") WHERE NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate'));
--
-- Create constraint call_place_in_pass on model toolcall
--
CREATE TABLE "new__runs_toolcall" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "index" smallint unsigned NOT NULL CHECK ("index" >= 0), "provider_call_id" varchar(200) NOT NULL, "tool" varchar(120) NOT NULL, "version" varchar(40) NOT NULL, "definition_hash" varchar(64) NOT NULL, "level" varchar(12) NOT NULL, "model_params" text NULL CHECK ((JSON_VALID("model_params") OR "model_params" IS NULL)), "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "params_hash" varchar(64) NOT NULL, "signature" varchar(64) NOT NULL, "idempotency_key" varchar(64) NOT NULL, "status" varchar(20) NOT NULL, "why" text NOT NULL, "judgment" text NULL CHECK ((JSON_VALID("judgment") OR "judgment" IS NULL)), "provenance" text NULL CHECK ((JSON_VALID("provenance") OR "provenance" IS NULL)), "exec_epoch" integer unsigned NULL CHECK ("exec_epoch" >= 0), "attempts" smallint unsigned NOT NULL CHECK ("attempts" >= 0), "drifts" smallint unsigned NOT NULL CHECK ("drifts" >= 0), "started_at" datetime NULL, "finished_at" datetime NULL, "finished_seq" integer unsigned NULL CHECK ("finished_seq" >= 0), "deadline_at" datetime NULL, "duration_ms" integer unsigned NULL CHECK ("duration_ms" >= 0), "result" text NULL CHECK ((JSON_VALID("result") OR "result" IS NULL)), "content" text NOT NULL, "late_effect" text NULL CHECK ((JSON_VALID("late_effect") OR "late_effect" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "duplicate_of_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_call_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "idempotency_key_once" UNIQUE ("idempotency_key"), CONSTRAINT "call_place_in_pass" UNIQUE ("run_id", "pass_number", "index"));
INSERT INTO "new__runs_toolcall" ("id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id") SELECT "id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id" FROM "runs_toolcall";
DROP TABLE "runs_toolcall";
ALTER TABLE "new__runs_toolcall" RENAME TO "runs_toolcall";
CREATE INDEX "calls_by_time" ON "runs_toolcall" ("organization_id", "created_at");
CREATE INDEX "calls_by_start" ON "runs_toolcall" ("organization_id", "tool", "started_at") WHERE "started_at" IS NOT NULL;
CREATE INDEX "calls_doubled" ON "runs_toolcall" ("duplicate_of_id") WHERE "duplicate_of_id" IS NOT NULL;
CREATE INDEX "calls_of_calls" ON "runs_toolcall" ("parent_call_id") WHERE "parent_call_id" IS NOT NULL;
CREATE INDEX "calls_executing" ON "runs_toolcall" ("deadline_at") WHERE "status" = 'executing';
CREATE INDEX "calls_open" ON "runs_toolcall" ("run_id") WHERE NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate'));
--
-- Create constraint call_id_in_pass on model toolcall
--
CREATE TABLE "new__runs_toolcall" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "index" smallint unsigned NOT NULL CHECK ("index" >= 0), "provider_call_id" varchar(200) NOT NULL, "tool" varchar(120) NOT NULL, "version" varchar(40) NOT NULL, "definition_hash" varchar(64) NOT NULL, "level" varchar(12) NOT NULL, "model_params" text NULL CHECK ((JSON_VALID("model_params") OR "model_params" IS NULL)), "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "params_hash" varchar(64) NOT NULL, "signature" varchar(64) NOT NULL, "idempotency_key" varchar(64) NOT NULL, "status" varchar(20) NOT NULL, "why" text NOT NULL, "judgment" text NULL CHECK ((JSON_VALID("judgment") OR "judgment" IS NULL)), "provenance" text NULL CHECK ((JSON_VALID("provenance") OR "provenance" IS NULL)), "exec_epoch" integer unsigned NULL CHECK ("exec_epoch" >= 0), "attempts" smallint unsigned NOT NULL CHECK ("attempts" >= 0), "drifts" smallint unsigned NOT NULL CHECK ("drifts" >= 0), "started_at" datetime NULL, "finished_at" datetime NULL, "finished_seq" integer unsigned NULL CHECK ("finished_seq" >= 0), "deadline_at" datetime NULL, "duration_ms" integer unsigned NULL CHECK ("duration_ms" >= 0), "result" text NULL CHECK ((JSON_VALID("result") OR "result" IS NULL)), "content" text NOT NULL, "late_effect" text NULL CHECK ((JSON_VALID("late_effect") OR "late_effect" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "duplicate_of_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_call_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "idempotency_key_once" UNIQUE ("idempotency_key"), CONSTRAINT "call_place_in_pass" UNIQUE ("run_id", "pass_number", "index"), CONSTRAINT "call_id_in_pass" UNIQUE ("run_id", "provider_call_id", "pass_number"));
INSERT INTO "new__runs_toolcall" ("id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id") SELECT "id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id" FROM "runs_toolcall";
DROP TABLE "runs_toolcall";
ALTER TABLE "new__runs_toolcall" RENAME TO "runs_toolcall";
CREATE INDEX "calls_by_time" ON "runs_toolcall" ("organization_id", "created_at");
CREATE INDEX "calls_by_start" ON "runs_toolcall" ("organization_id", "tool", "started_at") WHERE "started_at" IS NOT NULL;
CREATE INDEX "calls_doubled" ON "runs_toolcall" ("duplicate_of_id") WHERE "duplicate_of_id" IS NOT NULL;
CREATE INDEX "calls_of_calls" ON "runs_toolcall" ("parent_call_id") WHERE "parent_call_id" IS NOT NULL;
CREATE INDEX "calls_executing" ON "runs_toolcall" ("deadline_at") WHERE "status" = 'executing';
CREATE INDEX "calls_open" ON "runs_toolcall" ("run_id") WHERE NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate'));
--
-- Create constraint call_status_is_known on model toolcall
--
CREATE TABLE "new__runs_toolcall" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "index" smallint unsigned NOT NULL CHECK ("index" >= 0), "provider_call_id" varchar(200) NOT NULL, "tool" varchar(120) NOT NULL, "version" varchar(40) NOT NULL, "definition_hash" varchar(64) NOT NULL, "level" varchar(12) NOT NULL, "model_params" text NULL CHECK ((JSON_VALID("model_params") OR "model_params" IS NULL)), "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "params_hash" varchar(64) NOT NULL, "signature" varchar(64) NOT NULL, "idempotency_key" varchar(64) NOT NULL, "status" varchar(20) NOT NULL, "why" text NOT NULL, "judgment" text NULL CHECK ((JSON_VALID("judgment") OR "judgment" IS NULL)), "provenance" text NULL CHECK ((JSON_VALID("provenance") OR "provenance" IS NULL)), "exec_epoch" integer unsigned NULL CHECK ("exec_epoch" >= 0), "attempts" smallint unsigned NOT NULL CHECK ("attempts" >= 0), "drifts" smallint unsigned NOT NULL CHECK ("drifts" >= 0), "started_at" datetime NULL, "finished_at" datetime NULL, "finished_seq" integer unsigned NULL CHECK ("finished_seq" >= 0), "deadline_at" datetime NULL, "duration_ms" integer unsigned NULL CHECK ("duration_ms" >= 0), "result" text NULL CHECK ((JSON_VALID("result") OR "result" IS NULL)), "content" text NOT NULL, "late_effect" text NULL CHECK ((JSON_VALID("late_effect") OR "late_effect" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "duplicate_of_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_call_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "idempotency_key_once" UNIQUE ("idempotency_key"), CONSTRAINT "call_place_in_pass" UNIQUE ("run_id", "pass_number", "index"), CONSTRAINT "call_id_in_pass" UNIQUE ("run_id", "provider_call_id", "pass_number"), CONSTRAINT "call_status_is_known" CHECK ("status" IN ('ready', 'awaiting_approval', 'suspended', 'approved', 'executing', 'succeeded', 'failed', 'outcome_unknown', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate')));
INSERT INTO "new__runs_toolcall" ("id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id") SELECT "id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id" FROM "runs_toolcall";
DROP TABLE "runs_toolcall";
ALTER TABLE "new__runs_toolcall" RENAME TO "runs_toolcall";
CREATE INDEX "calls_by_time" ON "runs_toolcall" ("organization_id", "created_at");
CREATE INDEX "calls_by_start" ON "runs_toolcall" ("organization_id", "tool", "started_at") WHERE "started_at" IS NOT NULL;
CREATE INDEX "calls_doubled" ON "runs_toolcall" ("duplicate_of_id") WHERE "duplicate_of_id" IS NOT NULL;
CREATE INDEX "calls_of_calls" ON "runs_toolcall" ("parent_call_id") WHERE "parent_call_id" IS NOT NULL;
CREATE INDEX "calls_executing" ON "runs_toolcall" ("deadline_at") WHERE "status" = 'executing';
CREATE INDEX "calls_open" ON "runs_toolcall" ("run_id") WHERE NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate'));
--
-- Create constraint write_starts_at_most_once on model toolcall
--
CREATE TABLE "new__runs_toolcall" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "index" smallint unsigned NOT NULL CHECK ("index" >= 0), "provider_call_id" varchar(200) NOT NULL, "tool" varchar(120) NOT NULL, "version" varchar(40) NOT NULL, "definition_hash" varchar(64) NOT NULL, "level" varchar(12) NOT NULL, "model_params" text NULL CHECK ((JSON_VALID("model_params") OR "model_params" IS NULL)), "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "params_hash" varchar(64) NOT NULL, "signature" varchar(64) NOT NULL, "idempotency_key" varchar(64) NOT NULL, "status" varchar(20) NOT NULL, "why" text NOT NULL, "judgment" text NULL CHECK ((JSON_VALID("judgment") OR "judgment" IS NULL)), "provenance" text NULL CHECK ((JSON_VALID("provenance") OR "provenance" IS NULL)), "exec_epoch" integer unsigned NULL CHECK ("exec_epoch" >= 0), "attempts" smallint unsigned NOT NULL CHECK ("attempts" >= 0), "drifts" smallint unsigned NOT NULL CHECK ("drifts" >= 0), "started_at" datetime NULL, "finished_at" datetime NULL, "finished_seq" integer unsigned NULL CHECK ("finished_seq" >= 0), "deadline_at" datetime NULL, "duration_ms" integer unsigned NULL CHECK ("duration_ms" >= 0), "result" text NULL CHECK ((JSON_VALID("result") OR "result" IS NULL)), "content" text NOT NULL, "late_effect" text NULL CHECK ((JSON_VALID("late_effect") OR "late_effect" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "duplicate_of_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_call_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "idempotency_key_once" UNIQUE ("idempotency_key"), CONSTRAINT "call_place_in_pass" UNIQUE ("run_id", "pass_number", "index"), CONSTRAINT "call_id_in_pass" UNIQUE ("run_id", "provider_call_id", "pass_number"), CONSTRAINT "call_status_is_known" CHECK ("status" IN ('ready', 'awaiting_approval', 'suspended', 'approved', 'executing', 'succeeded', 'failed', 'outcome_unknown', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate')), CONSTRAINT "write_starts_at_most_once" CHECK (("level" IN ('read', 'draft') OR "attempts" <= 1)));
INSERT INTO "new__runs_toolcall" ("id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id") SELECT "id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id" FROM "runs_toolcall";
DROP TABLE "runs_toolcall";
ALTER TABLE "new__runs_toolcall" RENAME TO "runs_toolcall";
CREATE INDEX "calls_by_time" ON "runs_toolcall" ("organization_id", "created_at");
CREATE INDEX "calls_by_start" ON "runs_toolcall" ("organization_id", "tool", "started_at") WHERE "started_at" IS NOT NULL;
CREATE INDEX "calls_doubled" ON "runs_toolcall" ("duplicate_of_id") WHERE "duplicate_of_id" IS NOT NULL;
CREATE INDEX "calls_of_calls" ON "runs_toolcall" ("parent_call_id") WHERE "parent_call_id" IS NOT NULL;
CREATE INDEX "calls_executing" ON "runs_toolcall" ("deadline_at") WHERE "status" = 'executing';
CREATE INDEX "calls_open" ON "runs_toolcall" ("run_id") WHERE NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate'));
--
-- Create constraint call_level_is_known on model toolcall
--
CREATE TABLE "new__runs_toolcall" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "index" smallint unsigned NOT NULL CHECK ("index" >= 0), "provider_call_id" varchar(200) NOT NULL, "tool" varchar(120) NOT NULL, "version" varchar(40) NOT NULL, "definition_hash" varchar(64) NOT NULL, "level" varchar(12) NOT NULL, "model_params" text NULL CHECK ((JSON_VALID("model_params") OR "model_params" IS NULL)), "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "params_hash" varchar(64) NOT NULL, "signature" varchar(64) NOT NULL, "idempotency_key" varchar(64) NOT NULL, "status" varchar(20) NOT NULL, "why" text NOT NULL, "judgment" text NULL CHECK ((JSON_VALID("judgment") OR "judgment" IS NULL)), "provenance" text NULL CHECK ((JSON_VALID("provenance") OR "provenance" IS NULL)), "exec_epoch" integer unsigned NULL CHECK ("exec_epoch" >= 0), "attempts" smallint unsigned NOT NULL CHECK ("attempts" >= 0), "drifts" smallint unsigned NOT NULL CHECK ("drifts" >= 0), "started_at" datetime NULL, "finished_at" datetime NULL, "finished_seq" integer unsigned NULL CHECK ("finished_seq" >= 0), "deadline_at" datetime NULL, "duration_ms" integer unsigned NULL CHECK ("duration_ms" >= 0), "result" text NULL CHECK ((JSON_VALID("result") OR "result" IS NULL)), "content" text NOT NULL, "late_effect" text NULL CHECK ((JSON_VALID("late_effect") OR "late_effect" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "duplicate_of_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_call_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "idempotency_key_once" UNIQUE ("idempotency_key"), CONSTRAINT "call_place_in_pass" UNIQUE ("run_id", "pass_number", "index"), CONSTRAINT "call_id_in_pass" UNIQUE ("run_id", "provider_call_id", "pass_number"), CONSTRAINT "call_status_is_known" CHECK ("status" IN ('ready', 'awaiting_approval', 'suspended', 'approved', 'executing', 'succeeded', 'failed', 'outcome_unknown', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate')), CONSTRAINT "write_starts_at_most_once" CHECK (("level" IN ('read', 'draft') OR "attempts" <= 1)), CONSTRAINT "call_level_is_known" CHECK ("level" IN ('read', 'draft', 'write', 'destructive')));
INSERT INTO "new__runs_toolcall" ("id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id") SELECT "id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id" FROM "runs_toolcall";
DROP TABLE "runs_toolcall";
ALTER TABLE "new__runs_toolcall" RENAME TO "runs_toolcall";
CREATE INDEX "calls_by_time" ON "runs_toolcall" ("organization_id", "created_at");
CREATE INDEX "calls_by_start" ON "runs_toolcall" ("organization_id", "tool", "started_at") WHERE "started_at" IS NOT NULL;
CREATE INDEX "calls_doubled" ON "runs_toolcall" ("duplicate_of_id") WHERE "duplicate_of_id" IS NOT NULL;
CREATE INDEX "calls_of_calls" ON "runs_toolcall" ("parent_call_id") WHERE "parent_call_id" IS NOT NULL;
CREATE INDEX "calls_executing" ON "runs_toolcall" ("deadline_at") WHERE "status" = 'executing';
CREATE INDEX "calls_open" ON "runs_toolcall" ("run_id") WHERE NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate'));
--
-- Create constraint executing_call_has_epoch_and_deadline on model toolcall
--
CREATE TABLE "new__runs_toolcall" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "index" smallint unsigned NOT NULL CHECK ("index" >= 0), "provider_call_id" varchar(200) NOT NULL, "tool" varchar(120) NOT NULL, "version" varchar(40) NOT NULL, "definition_hash" varchar(64) NOT NULL, "level" varchar(12) NOT NULL, "model_params" text NULL CHECK ((JSON_VALID("model_params") OR "model_params" IS NULL)), "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "params_hash" varchar(64) NOT NULL, "signature" varchar(64) NOT NULL, "idempotency_key" varchar(64) NOT NULL, "status" varchar(20) NOT NULL, "why" text NOT NULL, "judgment" text NULL CHECK ((JSON_VALID("judgment") OR "judgment" IS NULL)), "provenance" text NULL CHECK ((JSON_VALID("provenance") OR "provenance" IS NULL)), "exec_epoch" integer unsigned NULL CHECK ("exec_epoch" >= 0), "attempts" smallint unsigned NOT NULL CHECK ("attempts" >= 0), "drifts" smallint unsigned NOT NULL CHECK ("drifts" >= 0), "started_at" datetime NULL, "finished_at" datetime NULL, "finished_seq" integer unsigned NULL CHECK ("finished_seq" >= 0), "deadline_at" datetime NULL, "duration_ms" integer unsigned NULL CHECK ("duration_ms" >= 0), "result" text NULL CHECK ((JSON_VALID("result") OR "result" IS NULL)), "content" text NOT NULL, "late_effect" text NULL CHECK ((JSON_VALID("late_effect") OR "late_effect" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "duplicate_of_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_call_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "idempotency_key_once" UNIQUE ("idempotency_key"), CONSTRAINT "call_place_in_pass" UNIQUE ("run_id", "pass_number", "index"), CONSTRAINT "call_id_in_pass" UNIQUE ("run_id", "provider_call_id", "pass_number"), CONSTRAINT "call_status_is_known" CHECK ("status" IN ('ready', 'awaiting_approval', 'suspended', 'approved', 'executing', 'succeeded', 'failed', 'outcome_unknown', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate')), CONSTRAINT "write_starts_at_most_once" CHECK (("level" IN ('read', 'draft') OR "attempts" <= 1)), CONSTRAINT "call_level_is_known" CHECK ("level" IN ('read', 'draft', 'write', 'destructive')), CONSTRAINT "executing_call_has_epoch_and_deadline" CHECK ((NOT ("status" = 'executing') OR ("deadline_at" IS NOT NULL AND "exec_epoch" IS NOT NULL))));
INSERT INTO "new__runs_toolcall" ("id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id") SELECT "id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id" FROM "runs_toolcall";
DROP TABLE "runs_toolcall";
ALTER TABLE "new__runs_toolcall" RENAME TO "runs_toolcall";
CREATE INDEX "calls_by_time" ON "runs_toolcall" ("organization_id", "created_at");
CREATE INDEX "calls_by_start" ON "runs_toolcall" ("organization_id", "tool", "started_at") WHERE "started_at" IS NOT NULL;
CREATE INDEX "calls_doubled" ON "runs_toolcall" ("duplicate_of_id") WHERE "duplicate_of_id" IS NOT NULL;
CREATE INDEX "calls_of_calls" ON "runs_toolcall" ("parent_call_id") WHERE "parent_call_id" IS NOT NULL;
CREATE INDEX "calls_executing" ON "runs_toolcall" ("deadline_at") WHERE "status" = 'executing';
CREATE INDEX "calls_open" ON "runs_toolcall" ("run_id") WHERE NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate'));
--
-- Create constraint terminal_call_has_an_end on model toolcall
--
CREATE TABLE "new__runs_toolcall" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "index" smallint unsigned NOT NULL CHECK ("index" >= 0), "provider_call_id" varchar(200) NOT NULL, "tool" varchar(120) NOT NULL, "version" varchar(40) NOT NULL, "definition_hash" varchar(64) NOT NULL, "level" varchar(12) NOT NULL, "model_params" text NULL CHECK ((JSON_VALID("model_params") OR "model_params" IS NULL)), "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "params_hash" varchar(64) NOT NULL, "signature" varchar(64) NOT NULL, "idempotency_key" varchar(64) NOT NULL, "status" varchar(20) NOT NULL, "why" text NOT NULL, "judgment" text NULL CHECK ((JSON_VALID("judgment") OR "judgment" IS NULL)), "provenance" text NULL CHECK ((JSON_VALID("provenance") OR "provenance" IS NULL)), "exec_epoch" integer unsigned NULL CHECK ("exec_epoch" >= 0), "attempts" smallint unsigned NOT NULL CHECK ("attempts" >= 0), "drifts" smallint unsigned NOT NULL CHECK ("drifts" >= 0), "started_at" datetime NULL, "finished_at" datetime NULL, "finished_seq" integer unsigned NULL CHECK ("finished_seq" >= 0), "deadline_at" datetime NULL, "duration_ms" integer unsigned NULL CHECK ("duration_ms" >= 0), "result" text NULL CHECK ((JSON_VALID("result") OR "result" IS NULL)), "content" text NOT NULL, "late_effect" text NULL CHECK ((JSON_VALID("late_effect") OR "late_effect" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "duplicate_of_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_call_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "idempotency_key_once" UNIQUE ("idempotency_key"), CONSTRAINT "call_place_in_pass" UNIQUE ("run_id", "pass_number", "index"), CONSTRAINT "call_id_in_pass" UNIQUE ("run_id", "provider_call_id", "pass_number"), CONSTRAINT "call_status_is_known" CHECK ("status" IN ('ready', 'awaiting_approval', 'suspended', 'approved', 'executing', 'succeeded', 'failed', 'outcome_unknown', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate')), CONSTRAINT "write_starts_at_most_once" CHECK (("level" IN ('read', 'draft') OR "attempts" <= 1)), CONSTRAINT "call_level_is_known" CHECK ("level" IN ('read', 'draft', 'write', 'destructive')), CONSTRAINT "executing_call_has_epoch_and_deadline" CHECK ((NOT ("status" = 'executing') OR ("deadline_at" IS NOT NULL AND "exec_epoch" IS NOT NULL))), CONSTRAINT "terminal_call_has_an_end" CHECK ((("finished_at" IS NOT NULL AND "status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate')) OR (NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate')) AND "finished_at" IS NULL))));
INSERT INTO "new__runs_toolcall" ("id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id") SELECT "id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id" FROM "runs_toolcall";
DROP TABLE "runs_toolcall";
ALTER TABLE "new__runs_toolcall" RENAME TO "runs_toolcall";
CREATE INDEX "calls_by_time" ON "runs_toolcall" ("organization_id", "created_at");
CREATE INDEX "calls_by_start" ON "runs_toolcall" ("organization_id", "tool", "started_at") WHERE "started_at" IS NOT NULL;
CREATE INDEX "calls_doubled" ON "runs_toolcall" ("duplicate_of_id") WHERE "duplicate_of_id" IS NOT NULL;
CREATE INDEX "calls_of_calls" ON "runs_toolcall" ("parent_call_id") WHERE "parent_call_id" IS NOT NULL;
CREATE INDEX "calls_executing" ON "runs_toolcall" ("deadline_at") WHERE "status" = 'executing';
CREATE INDEX "calls_open" ON "runs_toolcall" ("run_id") WHERE NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate'));
--
-- Create constraint terminal_call_has_a_tool_message on model toolcall
--
CREATE TABLE "new__runs_toolcall" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "index" smallint unsigned NOT NULL CHECK ("index" >= 0), "provider_call_id" varchar(200) NOT NULL, "tool" varchar(120) NOT NULL, "version" varchar(40) NOT NULL, "definition_hash" varchar(64) NOT NULL, "level" varchar(12) NOT NULL, "model_params" text NULL CHECK ((JSON_VALID("model_params") OR "model_params" IS NULL)), "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "params_hash" varchar(64) NOT NULL, "signature" varchar(64) NOT NULL, "idempotency_key" varchar(64) NOT NULL, "status" varchar(20) NOT NULL, "why" text NOT NULL, "judgment" text NULL CHECK ((JSON_VALID("judgment") OR "judgment" IS NULL)), "provenance" text NULL CHECK ((JSON_VALID("provenance") OR "provenance" IS NULL)), "exec_epoch" integer unsigned NULL CHECK ("exec_epoch" >= 0), "attempts" smallint unsigned NOT NULL CHECK ("attempts" >= 0), "drifts" smallint unsigned NOT NULL CHECK ("drifts" >= 0), "started_at" datetime NULL, "finished_at" datetime NULL, "finished_seq" integer unsigned NULL CHECK ("finished_seq" >= 0), "deadline_at" datetime NULL, "duration_ms" integer unsigned NULL CHECK ("duration_ms" >= 0), "result" text NULL CHECK ((JSON_VALID("result") OR "result" IS NULL)), "content" text NOT NULL, "late_effect" text NULL CHECK ((JSON_VALID("late_effect") OR "late_effect" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "duplicate_of_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_call_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "idempotency_key_once" UNIQUE ("idempotency_key"), CONSTRAINT "call_place_in_pass" UNIQUE ("run_id", "pass_number", "index"), CONSTRAINT "call_id_in_pass" UNIQUE ("run_id", "provider_call_id", "pass_number"), CONSTRAINT "call_status_is_known" CHECK ("status" IN ('ready', 'awaiting_approval', 'suspended', 'approved', 'executing', 'succeeded', 'failed', 'outcome_unknown', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate')), CONSTRAINT "write_starts_at_most_once" CHECK (("level" IN ('read', 'draft') OR "attempts" <= 1)), CONSTRAINT "call_level_is_known" CHECK ("level" IN ('read', 'draft', 'write', 'destructive')), CONSTRAINT "executing_call_has_epoch_and_deadline" CHECK ((NOT ("status" = 'executing') OR ("deadline_at" IS NOT NULL AND "exec_epoch" IS NOT NULL))), CONSTRAINT "terminal_call_has_an_end" CHECK ((("finished_at" IS NOT NULL AND "status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate')) OR (NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate')) AND "finished_at" IS NULL))), CONSTRAINT "terminal_call_has_a_tool_message" CHECK ((NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate')) OR NOT ("content" = '') OR ("duplicate_of_id" IS NOT NULL AND "status" = 'duplicate'))));
INSERT INTO "new__runs_toolcall" ("id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id") SELECT "id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id" FROM "runs_toolcall";
DROP TABLE "runs_toolcall";
ALTER TABLE "new__runs_toolcall" RENAME TO "runs_toolcall";
CREATE INDEX "calls_by_time" ON "runs_toolcall" ("organization_id", "created_at");
CREATE INDEX "calls_by_start" ON "runs_toolcall" ("organization_id", "tool", "started_at") WHERE "started_at" IS NOT NULL;
CREATE INDEX "calls_doubled" ON "runs_toolcall" ("duplicate_of_id") WHERE "duplicate_of_id" IS NOT NULL;
CREATE INDEX "calls_of_calls" ON "runs_toolcall" ("parent_call_id") WHERE "parent_call_id" IS NOT NULL;
CREATE INDEX "calls_executing" ON "runs_toolcall" ("deadline_at") WHERE "status" = 'executing';
CREATE INDEX "calls_open" ON "runs_toolcall" ("run_id") WHERE NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate'));
--
-- Create constraint late_effect_of_a_failed_call on model toolcall
--
CREATE TABLE "new__runs_toolcall" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "index" smallint unsigned NOT NULL CHECK ("index" >= 0), "provider_call_id" varchar(200) NOT NULL, "tool" varchar(120) NOT NULL, "version" varchar(40) NOT NULL, "definition_hash" varchar(64) NOT NULL, "level" varchar(12) NOT NULL, "model_params" text NULL CHECK ((JSON_VALID("model_params") OR "model_params" IS NULL)), "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "params_hash" varchar(64) NOT NULL, "signature" varchar(64) NOT NULL, "idempotency_key" varchar(64) NOT NULL, "status" varchar(20) NOT NULL, "why" text NOT NULL, "judgment" text NULL CHECK ((JSON_VALID("judgment") OR "judgment" IS NULL)), "provenance" text NULL CHECK ((JSON_VALID("provenance") OR "provenance" IS NULL)), "exec_epoch" integer unsigned NULL CHECK ("exec_epoch" >= 0), "attempts" smallint unsigned NOT NULL CHECK ("attempts" >= 0), "drifts" smallint unsigned NOT NULL CHECK ("drifts" >= 0), "started_at" datetime NULL, "finished_at" datetime NULL, "finished_seq" integer unsigned NULL CHECK ("finished_seq" >= 0), "deadline_at" datetime NULL, "duration_ms" integer unsigned NULL CHECK ("duration_ms" >= 0), "result" text NULL CHECK ((JSON_VALID("result") OR "result" IS NULL)), "content" text NOT NULL, "late_effect" text NULL CHECK ((JSON_VALID("late_effect") OR "late_effect" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "duplicate_of_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_call_id" bigint NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "idempotency_key_once" UNIQUE ("idempotency_key"), CONSTRAINT "call_place_in_pass" UNIQUE ("run_id", "pass_number", "index"), CONSTRAINT "call_id_in_pass" UNIQUE ("run_id", "provider_call_id", "pass_number"), CONSTRAINT "call_status_is_known" CHECK ("status" IN ('ready', 'awaiting_approval', 'suspended', 'approved', 'executing', 'succeeded', 'failed', 'outcome_unknown', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate')), CONSTRAINT "write_starts_at_most_once" CHECK (("level" IN ('read', 'draft') OR "attempts" <= 1)), CONSTRAINT "call_level_is_known" CHECK ("level" IN ('read', 'draft', 'write', 'destructive')), CONSTRAINT "executing_call_has_epoch_and_deadline" CHECK ((NOT ("status" = 'executing') OR ("deadline_at" IS NOT NULL AND "exec_epoch" IS NOT NULL))), CONSTRAINT "terminal_call_has_an_end" CHECK ((("finished_at" IS NOT NULL AND "status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate')) OR (NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate')) AND "finished_at" IS NULL))), CONSTRAINT "terminal_call_has_a_tool_message" CHECK ((NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate')) OR NOT ("content" = '') OR ("duplicate_of_id" IS NOT NULL AND "status" = 'duplicate'))), CONSTRAINT "late_effect_of_a_failed_call" CHECK (("late_effect" IS NULL OR "status" = 'failed')));
INSERT INTO "new__runs_toolcall" ("id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id") SELECT "id", "pass_number", "index", "provider_call_id", "tool", "version", "definition_hash", "level", "model_params", "params", "params_hash", "signature", "idempotency_key", "status", "why", "judgment", "provenance", "exec_epoch", "attempts", "drifts", "started_at", "finished_at", "finished_seq", "deadline_at", "duration_ms", "result", "content", "late_effect", "created_at", "duplicate_of_id", "organization_id", "parent_call_id", "run_id" FROM "runs_toolcall";
DROP TABLE "runs_toolcall";
ALTER TABLE "new__runs_toolcall" RENAME TO "runs_toolcall";
CREATE INDEX "calls_by_time" ON "runs_toolcall" ("organization_id", "created_at");
CREATE INDEX "calls_by_start" ON "runs_toolcall" ("organization_id", "tool", "started_at") WHERE "started_at" IS NOT NULL;
CREATE INDEX "calls_doubled" ON "runs_toolcall" ("duplicate_of_id") WHERE "duplicate_of_id" IS NOT NULL;
CREATE INDEX "calls_of_calls" ON "runs_toolcall" ("parent_call_id") WHERE "parent_call_id" IS NOT NULL;
CREATE INDEX "calls_executing" ON "runs_toolcall" ("deadline_at") WHERE "status" = 'executing';
CREATE INDEX "calls_open" ON "runs_toolcall" ("run_id") WHERE NOT ("status" IN ('succeeded', 'failed', 'denied', 'expired', 'cancelled', 'rejected', 'duplicate'));
--
-- Create index runs_of_organization on field(s) organization, -id of model run
--
CREATE INDEX "runs_of_organization" ON "runs_run" ("organization_id", "id" DESC);
--
-- Create index runs_by_time on field(s) organization, created_at of model run
--
CREATE INDEX "runs_by_time" ON "runs_run" ("organization_id", "created_at");
--
-- Create index runs_by_status on field(s) organization, status, -id of model run
--
CREATE INDEX "runs_by_status" ON "runs_run" ("organization_id", "status", "id" DESC);
--
-- Create index runs_by_employee on field(s) organization, employee, -id of model run
--
CREATE INDEX "runs_by_employee" ON "runs_run" ("organization_id", "employee_id", "id" DESC);
--
-- Create index runs_unfinished on field(s) organization, employee of model run
--
CREATE INDEX "runs_unfinished" ON "runs_run" ("organization_id", "employee_id") WHERE "status" IN ('queued', 'running', 'waiting', 'needs_attention');
--
-- Create index runs_due on field(s) status, next_wake_at of model run
--
CREATE INDEX "runs_due" ON "runs_run" ("status", "next_wake_at") WHERE "status" = 'queued';
--
-- Create index runs_leased on field(s) lease_expires_at of model run
--
CREATE INDEX "runs_leased" ON "runs_run" ("lease_expires_at") WHERE "status" = 'running';
--
-- Create constraint one_run_per_client_request on model run
--
CREATE UNIQUE INDEX "one_run_per_client_request" ON "runs_run" ("organization_id", "client_request_id") WHERE NOT ("client_request_id" = '');
--
-- Create constraint run_status_is_known on model run
--
CREATE TABLE "new__runs_run" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "origin" varchar(10) NOT NULL, "depth" smallint unsigned NOT NULL CHECK ("depth" >= 0), "client_request_id" varchar(200) NOT NULL, "correlation_id" varchar(64) DEFAULT '' NOT NULL, "title" varchar(200) NOT NULL, "task" text NOT NULL, "mode" varchar(40) NOT NULL, "status" varchar(16) NOT NULL, "exit_reason" varchar(24) NOT NULL, "outcome" varchar(16) NOT NULL, "answer" text NOT NULL, "problem" text NOT NULL, "stopped_because" varchar(300) NOT NULL, "session" text NOT NULL CHECK ((JSON_VALID("session") OR "session" IS NULL)), "lease_owner" varchar(64) NOT NULL, "lease_epoch" integer unsigned NOT NULL CHECK ("lease_epoch" >= 0), "lease_expires_at" datetime NULL, "next_wake_at" datetime NULL, "hinted_at" datetime NULL, "cancel_requested_at" datetime NULL, "deadline_at" datetime NULL, "patience_since" datetime NULL, "patience_tries" smallint unsigned NOT NULL CHECK ("patience_tries" >= 0), "crash_count" smallint unsigned NOT NULL CHECK ("crash_count" >= 0), "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "asked_pass" smallint unsigned NOT NULL CHECK ("asked_pass" >= 0), "max_passes" smallint unsigned NOT NULL CHECK ("max_passes" >= 0), "next_event_seq" integer unsigned NOT NULL CHECK ("next_event_seq" >= 0), "messages_heard" integer unsigned NOT NULL CHECK ("messages_heard" >= 0), "message_count" integer unsigned NOT NULL CHECK ("message_count" >= 0), "input_tokens" integer unsigned NOT NULL CHECK ("input_tokens" >= 0), "output_tokens" integer unsigned NOT NULL CHECK ("output_tokens" >= 0), "cost_micros" bigint unsigned NOT NULL CHECK ("cost_micros" >= 0), "estimated_tokens" integer unsigned NOT NULL CHECK ("estimated_tokens" >= 0), "unusable_ms" integer unsigned DEFAULT 0 NOT NULL CHECK ("unusable_ms" >= 0), "kept_answer" text NULL CHECK ((JSON_VALID("kept_answer") OR "kept_answer" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "started_at" datetime NULL, "finished_at" datetime NULL, "created_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "employee_id" bigint NOT NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_call_id" bigint NULL UNIQUE REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_id" bigint NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "run_status_is_known" CHECK ("status" IN ('queued', 'running', 'waiting', 'needs_attention', 'succeeded', 'failed', 'cancelled')));
INSERT INTO "new__runs_run" ("id", "origin", "depth", "client_request_id", "correlation_id", "title", "task", "mode", "status", "exit_reason", "outcome", "answer", "problem", "stopped_because", "session", "lease_owner", "lease_epoch", "lease_expires_at", "next_wake_at", "hinted_at", "cancel_requested_at", "deadline_at", "patience_since", "patience_tries", "crash_count", "pass_number", "asked_pass", "max_passes", "next_event_seq", "messages_heard", "message_count", "input_tokens", "output_tokens", "cost_micros", "estimated_tokens", "unusable_ms", "kept_answer", "created_at", "started_at", "finished_at", "created_by_id", "employee_id", "organization_id", "parent_id", "parent_call_id") SELECT "id", "origin", "depth", "client_request_id", "correlation_id", "title", "task", "mode", "status", "exit_reason", "outcome", "answer", "problem", "stopped_because", "session", "lease_owner", "lease_epoch", "lease_expires_at", "next_wake_at", "hinted_at", "cancel_requested_at", "deadline_at", "patience_since", "patience_tries", "crash_count", "pass_number", "asked_pass", "max_passes", "next_event_seq", "messages_heard", "message_count", "input_tokens", "output_tokens", "cost_micros", "estimated_tokens", "unusable_ms", "kept_answer", "created_at", "started_at", "finished_at", "created_by_id", "employee_id", "organization_id", "parent_id", "parent_call_id" FROM "runs_run";
DROP TABLE "runs_run";
ALTER TABLE "new__runs_run" RENAME TO "runs_run";
CREATE UNIQUE INDEX "one_run_per_client_request" ON "runs_run" ("organization_id", "client_request_id") WHERE NOT ("client_request_id" = '');
CREATE INDEX "runs_run_created_by_id_f5dec0c1" ON "runs_run" ("created_by_id");
CREATE INDEX "runs_run_employee_id_22a12c15" ON "runs_run" ("employee_id");
CREATE INDEX "runs_run_parent_id_8594b290" ON "runs_run" ("parent_id");
CREATE INDEX "runs_of_organization" ON "runs_run" ("organization_id", "id" DESC);
CREATE INDEX "runs_by_time" ON "runs_run" ("organization_id", "created_at");
CREATE INDEX "runs_by_status" ON "runs_run" ("organization_id", "status", "id" DESC);
CREATE INDEX "runs_by_employee" ON "runs_run" ("organization_id", "employee_id", "id" DESC);
CREATE INDEX "runs_unfinished" ON "runs_run" ("organization_id", "employee_id") WHERE "status" IN ('queued', 'running', 'waiting', 'needs_attention');
CREATE INDEX "runs_due" ON "runs_run" ("status", "next_wake_at") WHERE "status" = 'queued';
CREATE INDEX "runs_leased" ON "runs_run" ("lease_expires_at") WHERE "status" = 'running';
--
-- Create constraint run_has_a_lease_while_running on model run
--
CREATE TABLE "new__runs_run" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "origin" varchar(10) NOT NULL, "depth" smallint unsigned NOT NULL CHECK ("depth" >= 0), "client_request_id" varchar(200) NOT NULL, "correlation_id" varchar(64) DEFAULT '' NOT NULL, "title" varchar(200) NOT NULL, "task" text NOT NULL, "mode" varchar(40) NOT NULL, "status" varchar(16) NOT NULL, "exit_reason" varchar(24) NOT NULL, "outcome" varchar(16) NOT NULL, "answer" text NOT NULL, "problem" text NOT NULL, "stopped_because" varchar(300) NOT NULL, "session" text NOT NULL CHECK ((JSON_VALID("session") OR "session" IS NULL)), "lease_owner" varchar(64) NOT NULL, "lease_epoch" integer unsigned NOT NULL CHECK ("lease_epoch" >= 0), "lease_expires_at" datetime NULL, "next_wake_at" datetime NULL, "hinted_at" datetime NULL, "cancel_requested_at" datetime NULL, "deadline_at" datetime NULL, "patience_since" datetime NULL, "patience_tries" smallint unsigned NOT NULL CHECK ("patience_tries" >= 0), "crash_count" smallint unsigned NOT NULL CHECK ("crash_count" >= 0), "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "asked_pass" smallint unsigned NOT NULL CHECK ("asked_pass" >= 0), "max_passes" smallint unsigned NOT NULL CHECK ("max_passes" >= 0), "next_event_seq" integer unsigned NOT NULL CHECK ("next_event_seq" >= 0), "messages_heard" integer unsigned NOT NULL CHECK ("messages_heard" >= 0), "message_count" integer unsigned NOT NULL CHECK ("message_count" >= 0), "input_tokens" integer unsigned NOT NULL CHECK ("input_tokens" >= 0), "output_tokens" integer unsigned NOT NULL CHECK ("output_tokens" >= 0), "cost_micros" bigint unsigned NOT NULL CHECK ("cost_micros" >= 0), "estimated_tokens" integer unsigned NOT NULL CHECK ("estimated_tokens" >= 0), "unusable_ms" integer unsigned DEFAULT 0 NOT NULL CHECK ("unusable_ms" >= 0), "kept_answer" text NULL CHECK ((JSON_VALID("kept_answer") OR "kept_answer" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "started_at" datetime NULL, "finished_at" datetime NULL, "created_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "employee_id" bigint NOT NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_call_id" bigint NULL UNIQUE REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_id" bigint NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "run_status_is_known" CHECK ("status" IN ('queued', 'running', 'waiting', 'needs_attention', 'succeeded', 'failed', 'cancelled')), CONSTRAINT "run_has_a_lease_while_running" CHECK ((("lease_expires_at" IS NOT NULL AND "status" = 'running' AND NOT ("lease_owner" = '')) OR (NOT ("status" = 'running') AND "lease_expires_at" IS NULL AND "lease_owner" = ''))));
INSERT INTO "new__runs_run" ("id", "origin", "depth", "client_request_id", "correlation_id", "title", "task", "mode", "status", "exit_reason", "outcome", "answer", "problem", "stopped_because", "session", "lease_owner", "lease_epoch", "lease_expires_at", "next_wake_at", "hinted_at", "cancel_requested_at", "deadline_at", "patience_since", "patience_tries", "crash_count", "pass_number", "asked_pass", "max_passes", "next_event_seq", "messages_heard", "message_count", "input_tokens", "output_tokens", "cost_micros", "estimated_tokens", "unusable_ms", "kept_answer", "created_at", "started_at", "finished_at", "created_by_id", "employee_id", "organization_id", "parent_id", "parent_call_id") SELECT "id", "origin", "depth", "client_request_id", "correlation_id", "title", "task", "mode", "status", "exit_reason", "outcome", "answer", "problem", "stopped_because", "session", "lease_owner", "lease_epoch", "lease_expires_at", "next_wake_at", "hinted_at", "cancel_requested_at", "deadline_at", "patience_since", "patience_tries", "crash_count", "pass_number", "asked_pass", "max_passes", "next_event_seq", "messages_heard", "message_count", "input_tokens", "output_tokens", "cost_micros", "estimated_tokens", "unusable_ms", "kept_answer", "created_at", "started_at", "finished_at", "created_by_id", "employee_id", "organization_id", "parent_id", "parent_call_id" FROM "runs_run";
DROP TABLE "runs_run";
ALTER TABLE "new__runs_run" RENAME TO "runs_run";
CREATE UNIQUE INDEX "one_run_per_client_request" ON "runs_run" ("organization_id", "client_request_id") WHERE NOT ("client_request_id" = '');
CREATE INDEX "runs_run_created_by_id_f5dec0c1" ON "runs_run" ("created_by_id");
CREATE INDEX "runs_run_employee_id_22a12c15" ON "runs_run" ("employee_id");
CREATE INDEX "runs_run_parent_id_8594b290" ON "runs_run" ("parent_id");
CREATE INDEX "runs_of_organization" ON "runs_run" ("organization_id", "id" DESC);
CREATE INDEX "runs_by_time" ON "runs_run" ("organization_id", "created_at");
CREATE INDEX "runs_by_status" ON "runs_run" ("organization_id", "status", "id" DESC);
CREATE INDEX "runs_by_employee" ON "runs_run" ("organization_id", "employee_id", "id" DESC);
CREATE INDEX "runs_unfinished" ON "runs_run" ("organization_id", "employee_id") WHERE "status" IN ('queued', 'running', 'waiting', 'needs_attention');
CREATE INDEX "runs_due" ON "runs_run" ("status", "next_wake_at") WHERE "status" = 'queued';
CREATE INDEX "runs_leased" ON "runs_run" ("lease_expires_at") WHERE "status" = 'running';
--
-- Create constraint run_ends_with_a_reason on model run
--
CREATE TABLE "new__runs_run" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "origin" varchar(10) NOT NULL, "depth" smallint unsigned NOT NULL CHECK ("depth" >= 0), "client_request_id" varchar(200) NOT NULL, "correlation_id" varchar(64) DEFAULT '' NOT NULL, "title" varchar(200) NOT NULL, "task" text NOT NULL, "mode" varchar(40) NOT NULL, "status" varchar(16) NOT NULL, "exit_reason" varchar(24) NOT NULL, "outcome" varchar(16) NOT NULL, "answer" text NOT NULL, "problem" text NOT NULL, "stopped_because" varchar(300) NOT NULL, "session" text NOT NULL CHECK ((JSON_VALID("session") OR "session" IS NULL)), "lease_owner" varchar(64) NOT NULL, "lease_epoch" integer unsigned NOT NULL CHECK ("lease_epoch" >= 0), "lease_expires_at" datetime NULL, "next_wake_at" datetime NULL, "hinted_at" datetime NULL, "cancel_requested_at" datetime NULL, "deadline_at" datetime NULL, "patience_since" datetime NULL, "patience_tries" smallint unsigned NOT NULL CHECK ("patience_tries" >= 0), "crash_count" smallint unsigned NOT NULL CHECK ("crash_count" >= 0), "pass_number" smallint unsigned NOT NULL CHECK ("pass_number" >= 0), "asked_pass" smallint unsigned NOT NULL CHECK ("asked_pass" >= 0), "max_passes" smallint unsigned NOT NULL CHECK ("max_passes" >= 0), "next_event_seq" integer unsigned NOT NULL CHECK ("next_event_seq" >= 0), "messages_heard" integer unsigned NOT NULL CHECK ("messages_heard" >= 0), "message_count" integer unsigned NOT NULL CHECK ("message_count" >= 0), "input_tokens" integer unsigned NOT NULL CHECK ("input_tokens" >= 0), "output_tokens" integer unsigned NOT NULL CHECK ("output_tokens" >= 0), "cost_micros" bigint unsigned NOT NULL CHECK ("cost_micros" >= 0), "estimated_tokens" integer unsigned NOT NULL CHECK ("estimated_tokens" >= 0), "unusable_ms" integer unsigned DEFAULT 0 NOT NULL CHECK ("unusable_ms" >= 0), "kept_answer" text NULL CHECK ((JSON_VALID("kept_answer") OR "kept_answer" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "started_at" datetime NULL, "finished_at" datetime NULL, "created_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "employee_id" bigint NOT NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_call_id" bigint NULL UNIQUE REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "parent_id" bigint NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "run_status_is_known" CHECK ("status" IN ('queued', 'running', 'waiting', 'needs_attention', 'succeeded', 'failed', 'cancelled')), CONSTRAINT "run_has_a_lease_while_running" CHECK ((("lease_expires_at" IS NOT NULL AND "status" = 'running' AND NOT ("lease_owner" = '')) OR (NOT ("status" = 'running') AND "lease_expires_at" IS NULL AND "lease_owner" = ''))), CONSTRAINT "run_ends_with_a_reason" CHECK ((("finished_at" IS NOT NULL AND "status" IN ('succeeded', 'failed', 'cancelled') AND NOT ("exit_reason" = '')) OR (NOT ("status" IN ('succeeded', 'failed', 'cancelled')) AND "exit_reason" = '' AND "finished_at" IS NULL))));
INSERT INTO "new__runs_run" ("id", "origin", "depth", "client_request_id", "correlation_id", "title", "task", "mode", "status", "exit_reason", "outcome", "answer", "problem", "stopped_because", "session", "lease_owner", "lease_epoch", "lease_expires_at", "next_wake_at", "hinted_at", "cancel_requested_at", "deadline_at", "patience_since", "patience_tries", "crash_count", "pass_number", "asked_pass", "max_passes", "next_event_seq", "messages_heard", "message_count", "input_tokens", "output_tokens", "cost_micros", "estimated_tokens", "unusable_ms", "kept_answer", "created_at", "started_at", "finished_at", "created_by_id", "employee_id", "organization_id", "parent_id", "parent_call_id") SELECT "id", "origin", "depth", "client_request_id", "correlation_id", "title", "task", "mode", "status", "exit_reason", "outcome", "answer", "problem", "stopped_because", "session", "lease_owner", "lease_epoch", "lease_expires_at", "next_wake_at", "hinted_at", "cancel_requested_at", "deadline_at", "patience_since", "patience_tries", "crash_count", "pass_number", "asked_pass", "max_passes", "next_event_seq", "messages_heard", "message_count", "input_tokens", "output_tokens", "cost_micros", "estimated_tokens", "unusable_ms", "kept_answer", "created_at", "started_at", "finished_at", "created_by_id", "employee_id", "organization_id", "parent_id", "parent_call_id" FROM "runs_run";
DROP TABLE "runs_run";
ALTER TABLE "new__runs_run" RENAME TO "runs_run";
CREATE UNIQUE INDEX "one_run_per_client_request" ON "runs_run" ("organization_id", "client_request_id") WHERE NOT ("client_request_id" = '');
CREATE INDEX "runs_run_created_by_id_f5dec0c1" ON "runs_run" ("created_by_id");
CREATE INDEX "runs_run_employee_id_22a12c15" ON "runs_run" ("employee_id");
CREATE INDEX "runs_run_parent_id_8594b290" ON "runs_run" ("parent_id");
CREATE INDEX "runs_of_organization" ON "runs_run" ("organization_id", "id" DESC);
CREATE INDEX "runs_by_time" ON "runs_run" ("organization_id", "created_at");
CREATE INDEX "runs_by_status" ON "runs_run" ("organization_id", "status", "id" DESC);
CREATE INDEX "runs_by_employee" ON "runs_run" ("organization_id", "employee_id", "id" DESC);
CREATE INDEX "runs_unfinished" ON "runs_run" ("organization_id", "employee_id") WHERE "status" IN ('queued', 'running', 'waiting', 'needs_attention');
CREATE INDEX "runs_due" ON "runs_run" ("status", "next_wake_at") WHERE "status" = 'queued';
CREATE INDEX "runs_leased" ON "runs_run" ("lease_expires_at") WHERE "status" = 'running';
--
-- Create constraint outside_value_once on model outsidevalue
--
CREATE TABLE "new__runs_outsidevalue" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "key" varchar(32) NOT NULL, "param" varchar(200) NOT NULL, "title" varchar(200) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "call_id" bigint NOT NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "outside_value_once" UNIQUE ("organization_id", "key"));
INSERT INTO "new__runs_outsidevalue" ("id", "key", "param", "title", "created_at", "organization_id", "call_id") SELECT "id", "key", "param", "title", "created_at", "organization_id", "call_id" FROM "runs_outsidevalue";
DROP TABLE "runs_outsidevalue";
ALTER TABLE "new__runs_outsidevalue" RENAME TO "runs_outsidevalue";
CREATE INDEX "runs_outsidevalue_call_id_2e806353" ON "runs_outsidevalue" ("call_id");
-- migration standing_grants.0001_initial
--
-- Create model StandingGrant
--
CREATE TABLE "standing_grants_standinggrant" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "tool" varchar(120) NOT NULL, "definition_hash" varchar(64) NOT NULL, "level" varchar(12) NOT NULL, "account" varchar(64) NOT NULL, "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "conditions" text NOT NULL CHECK ((JSON_VALID("conditions") OR "conditions" IS NULL)), "max_uses" smallint unsigned NOT NULL CHECK ("max_uses" >= 0), "expires_at" datetime NOT NULL, "made_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "client_grant_id" varchar(200) DEFAULT '' NOT NULL, "revoked_at" datetime NULL, "ended_at" datetime NULL, "ended_because" varchar(300) NOT NULL, "employee_id" bigint NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, "made_by_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "revoked_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "grant_uses_1_to_1000" CHECK (("max_uses" >= 1 AND "max_uses" <= 1000)), CONSTRAINT "standing_grant_is_not_destructive" CHECK ("level" IN ('read', 'draft', 'write')), CONSTRAINT "revocation_names_its_person" CHECK ((("revoked_at" IS NULL AND "revoked_by_id" IS NULL) OR ("revoked_at" IS NOT NULL AND "revoked_by_id" IS NOT NULL))));
CREATE UNIQUE INDEX "grant_client_id_of_maker" ON "standing_grants_standinggrant" ("organization_id", "made_by_id", "client_grant_id") WHERE NOT ("client_grant_id" = '');
CREATE INDEX "standing_grants_standinggrant_employee_id_bd2db90d" ON "standing_grants_standinggrant" ("employee_id");
CREATE INDEX "standing_grants_standinggrant_made_by_id_d87338ea" ON "standing_grants_standinggrant" ("made_by_id");
CREATE INDEX "standing_grants_standinggrant_organization_id_e8815e7c" ON "standing_grants_standinggrant" ("organization_id");
CREATE INDEX "standing_grants_standinggrant_revoked_by_id_fc2e4a33" ON "standing_grants_standinggrant" ("revoked_by_id");
CREATE INDEX "standing_grants_standinggrant_run_id_fd5ce710" ON "standing_grants_standinggrant" ("run_id");
CREATE INDEX "grants_in_force" ON "standing_grants_standinggrant" ("organization_id", "tool", "expires_at") WHERE ("ended_at" IS NULL AND "revoked_at" IS NULL);
-- migration approvals.0001_initial
--
-- Create model Approval
--
CREATE TABLE "approvals_approval" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "sequence" smallint unsigned NOT NULL CHECK ("sequence" >= 0), "kind" varchar(10) NOT NULL, "status" varchar(12) NOT NULL, "level" varchar(12) NOT NULL, "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "sentence" text NOT NULL, "preview" text NOT NULL CHECK ((JSON_VALID("preview") OR "preview" IS NULL)), "why" text NOT NULL, "words" text DEFAULT '' NOT NULL, "digest" varchar(64) NOT NULL, "shape" varchar(64) NOT NULL, "requested_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "expires_at" datetime NOT NULL, "decided_at" datetime NULL, "ruling" text NULL CHECK ((JSON_VALID("ruling") OR "ruling" IS NULL)), "broke_glass" bool DEFAULT 0 NOT NULL, "reason" text NOT NULL, "decision_id" varchar(200) NOT NULL, "bulk_id" char(32) NULL, "start_after" datetime NULL, "valid_until" datetime NULL, "consumed_at" datetime NULL, "decided_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "standing_grant_id" bigint NULL REFERENCES "standing_grants_standinggrant" ("id") DEFERRABLE INITIALLY DEFERRED, "tool_call_id" bigint NOT NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model Claim
--
CREATE TABLE "approvals_claim" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "until" datetime NOT NULL, "tool_call_id" bigint NOT NULL UNIQUE REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model SavedView
--
CREATE TABLE "approvals_savedview" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(60) NOT NULL, "query" varchar(500) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model Snooze
--
CREATE TABLE "approvals_snooze" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "until" datetime NOT NULL, "tool_call_id" bigint NOT NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model Vote
--
CREATE TABLE "approvals_vote" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "decision_id" varchar(200) NOT NULL, "bulk_id" char(32) NULL, "cast_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "withdrawn_at" datetime NULL, "approval_id" bigint NOT NULL REFERENCES "approvals_approval" ("id") DEFERRABLE INITIALLY DEFERRED, "deputy_for_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "voter_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model WithheldBulk
--
CREATE TABLE "approvals_withheldbulk" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "bulk_id" char(32) NOT NULL, "withheld_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create index approvals_by_status on field(s) organization, status, id of model approval
--
CREATE INDEX "approvals_by_status" ON "approvals_approval" ("organization_id", "status", "id");
--
-- Create index decisions_by_time on field(s) organization, decided_at of model approval
--
CREATE INDEX "decisions_by_time" ON "approvals_approval" ("organization_id", "decided_at") WHERE "decided_at" IS NOT NULL;
--
-- Create index decisions_by_person on field(s) organization, decided_by, decided_at, id of model approval
--
CREATE INDEX "decisions_by_person" ON "approvals_approval" ("organization_id", "decided_by_id", "decided_at", "id") WHERE ("decided_at" IS NOT NULL AND "standing_grant_id" IS NULL);
--
-- Create index denials_by_time on field(s) organization, -decided_at of model approval
--
CREATE INDEX "denials_by_time" ON "approvals_approval" ("organization_id", "decided_at" DESC) WHERE "status" = 'denied';
--
-- Create index approvals_newest on field(s) organization, -id of model approval
--
CREATE INDEX "approvals_newest" ON "approvals_approval" ("organization_id", "id" DESC);
--
-- Create index approvals_by_end on F(organization), Coalesce(F(decided_at), F(requested_at)), F(id) on model approval
--
CREATE INDEX "approvals_by_end" ON "approvals_approval" ("organization_id", (COALESCE("decided_at", "requested_at")), "id") WHERE NOT ("status" = 'pending');
--
-- Create index decisions_by_shape on field(s) organization, shape, -decided_at, -id of model approval
--
CREATE INDEX "decisions_by_shape" ON "approvals_approval" ("organization_id", "shape", "decided_at" DESC, "id" DESC) WHERE "decided_at" IS NOT NULL;
--
-- Create index approvals_of_run on field(s) run, id of model approval
--
CREATE INDEX "approvals_of_run" ON "approvals_approval" ("run_id", "id");
--
-- Create index approvals_waiting on field(s) organization, tool_call, id of model approval
--
CREATE INDEX "approvals_waiting" ON "approvals_approval" ("organization_id", "tool_call_id", "id") WHERE "status" = 'pending';
--
-- Create index approvals_expiring on field(s) expires_at of model approval
--
CREATE INDEX "approvals_expiring" ON "approvals_approval" ("expires_at") WHERE "status" = 'pending';
--
-- Create index approvals_starting on field(s) start_after of model approval
--
CREATE INDEX "approvals_starting" ON "approvals_approval" ("start_after") WHERE "status" = 'approved';
--
-- Create index approvals_of_grants on field(s) standing_grant, -id of model approval
--
CREATE INDEX "approvals_of_grants" ON "approvals_approval" ("standing_grant_id", "id" DESC) WHERE "standing_grant_id" IS NOT NULL;
--
-- Create constraint approval_sequence_of_call on model approval
--
CREATE TABLE "new__approvals_approval" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "sequence" smallint unsigned NOT NULL CHECK ("sequence" >= 0), "kind" varchar(10) NOT NULL, "status" varchar(12) NOT NULL, "level" varchar(12) NOT NULL, "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "sentence" text NOT NULL, "preview" text NOT NULL CHECK ((JSON_VALID("preview") OR "preview" IS NULL)), "why" text NOT NULL, "words" text DEFAULT '' NOT NULL, "digest" varchar(64) NOT NULL, "shape" varchar(64) NOT NULL, "requested_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "expires_at" datetime NOT NULL, "decided_at" datetime NULL, "ruling" text NULL CHECK ((JSON_VALID("ruling") OR "ruling" IS NULL)), "broke_glass" bool DEFAULT 0 NOT NULL, "reason" text NOT NULL, "decision_id" varchar(200) NOT NULL, "bulk_id" char(32) NULL, "start_after" datetime NULL, "valid_until" datetime NULL, "consumed_at" datetime NULL, "decided_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "standing_grant_id" bigint NULL REFERENCES "standing_grants_standinggrant" ("id") DEFERRABLE INITIALLY DEFERRED, "tool_call_id" bigint NOT NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "approval_sequence_of_call" UNIQUE ("tool_call_id", "sequence"));
INSERT INTO "new__approvals_approval" ("id", "sequence", "kind", "status", "level", "params", "sentence", "preview", "why", "words", "digest", "shape", "requested_at", "expires_at", "decided_at", "ruling", "broke_glass", "reason", "decision_id", "bulk_id", "start_after", "valid_until", "consumed_at", "decided_by_id", "organization_id", "run_id", "standing_grant_id", "tool_call_id") SELECT "id", "sequence", "kind", "status", "level", "params", "sentence", "preview", "why", "words", "digest", "shape", "requested_at", "expires_at", "decided_at", "ruling", "broke_glass", "reason", "decision_id", "bulk_id", "start_after", "valid_until", "consumed_at", "decided_by_id", "organization_id", "run_id", "standing_grant_id", "tool_call_id" FROM "approvals_approval";
DROP TABLE "approvals_approval";
ALTER TABLE "new__approvals_approval" RENAME TO "approvals_approval";
CREATE INDEX "approvals_claim_until_2b08d392" ON "approvals_claim" ("until");
CREATE INDEX "approvals_claim_user_id_d67a0035" ON "approvals_claim" ("user_id");
CREATE INDEX "approvals_savedview_organization_id_ba40f19f" ON "approvals_savedview" ("organization_id");
CREATE INDEX "approvals_savedview_user_id_9dd5b00e" ON "approvals_savedview" ("user_id");
CREATE INDEX "approvals_snooze_tool_call_id_2e464cfe" ON "approvals_snooze" ("tool_call_id");
CREATE INDEX "approvals_snooze_user_id_ec9da4e6" ON "approvals_snooze" ("user_id");
CREATE INDEX "approvals_vote_deputy_for_id_d6b43a74" ON "approvals_vote" ("deputy_for_id");
CREATE INDEX "approvals_vote_voter_id_c7a893c8" ON "approvals_vote" ("voter_id");
CREATE INDEX "approvals_withheldbulk_user_id_a90a815c" ON "approvals_withheldbulk" ("user_id");
CREATE INDEX "approvals_approval_decided_by_id_16c3e602" ON "approvals_approval" ("decided_by_id");
CREATE INDEX "approvals_by_status" ON "approvals_approval" ("organization_id", "status", "id");
CREATE INDEX "decisions_by_time" ON "approvals_approval" ("organization_id", "decided_at") WHERE "decided_at" IS NOT NULL;
CREATE INDEX "decisions_by_person" ON "approvals_approval" ("organization_id", "decided_by_id", "decided_at", "id") WHERE ("decided_at" IS NOT NULL AND "standing_grant_id" IS NULL);
CREATE INDEX "denials_by_time" ON "approvals_approval" ("organization_id", "decided_at" DESC) WHERE "status" = 'denied';
CREATE INDEX "approvals_newest" ON "approvals_approval" ("organization_id", "id" DESC);
CREATE INDEX "approvals_by_end" ON "approvals_approval" ("organization_id", (COALESCE("decided_at", "requested_at")), "id") WHERE NOT ("status" = 'pending');
CREATE INDEX "decisions_by_shape" ON "approvals_approval" ("organization_id", "shape", "decided_at" DESC, "id" DESC) WHERE "decided_at" IS NOT NULL;
CREATE INDEX "approvals_of_run" ON "approvals_approval" ("run_id", "id");
CREATE INDEX "approvals_waiting" ON "approvals_approval" ("organization_id", "tool_call_id", "id") WHERE "status" = 'pending';
CREATE INDEX "approvals_expiring" ON "approvals_approval" ("expires_at") WHERE "status" = 'pending';
CREATE INDEX "approvals_starting" ON "approvals_approval" ("start_after") WHERE "status" = 'approved';
CREATE INDEX "approvals_of_grants" ON "approvals_approval" ("standing_grant_id", "id" DESC) WHERE "standing_grant_id" IS NOT NULL;
--
-- Create constraint one_open_approval_per_call on model approval
--
CREATE UNIQUE INDEX "one_open_approval_per_call" ON "approvals_approval" ("tool_call_id") WHERE "status" IN ('pending', 'approved');
--
-- Create constraint one_consumed_approval_per_call on model approval
--
CREATE UNIQUE INDEX "one_consumed_approval_per_call" ON "approvals_approval" ("tool_call_id") WHERE "status" = 'consumed';
--
-- Create constraint approval_status_is_known on model approval
--
CREATE TABLE "new__approvals_approval" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "sequence" smallint unsigned NOT NULL CHECK ("sequence" >= 0), "kind" varchar(10) NOT NULL, "status" varchar(12) NOT NULL, "level" varchar(12) NOT NULL, "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "sentence" text NOT NULL, "preview" text NOT NULL CHECK ((JSON_VALID("preview") OR "preview" IS NULL)), "why" text NOT NULL, "words" text DEFAULT '' NOT NULL, "digest" varchar(64) NOT NULL, "shape" varchar(64) NOT NULL, "requested_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "expires_at" datetime NOT NULL, "decided_at" datetime NULL, "ruling" text NULL CHECK ((JSON_VALID("ruling") OR "ruling" IS NULL)), "broke_glass" bool DEFAULT 0 NOT NULL, "reason" text NOT NULL, "decision_id" varchar(200) NOT NULL, "bulk_id" char(32) NULL, "start_after" datetime NULL, "valid_until" datetime NULL, "consumed_at" datetime NULL, "decided_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "standing_grant_id" bigint NULL REFERENCES "standing_grants_standinggrant" ("id") DEFERRABLE INITIALLY DEFERRED, "tool_call_id" bigint NOT NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "approval_sequence_of_call" UNIQUE ("tool_call_id", "sequence"), CONSTRAINT "approval_status_is_known" CHECK ("status" IN ('pending', 'approved', 'denied', 'answered', 'expired', 'cancelled', 'superseded', 'consumed')));
INSERT INTO "new__approvals_approval" ("id", "sequence", "kind", "status", "level", "params", "sentence", "preview", "why", "words", "digest", "shape", "requested_at", "expires_at", "decided_at", "ruling", "broke_glass", "reason", "decision_id", "bulk_id", "start_after", "valid_until", "consumed_at", "decided_by_id", "organization_id", "run_id", "standing_grant_id", "tool_call_id") SELECT "id", "sequence", "kind", "status", "level", "params", "sentence", "preview", "why", "words", "digest", "shape", "requested_at", "expires_at", "decided_at", "ruling", "broke_glass", "reason", "decision_id", "bulk_id", "start_after", "valid_until", "consumed_at", "decided_by_id", "organization_id", "run_id", "standing_grant_id", "tool_call_id" FROM "approvals_approval";
DROP TABLE "approvals_approval";
ALTER TABLE "new__approvals_approval" RENAME TO "approvals_approval";
CREATE UNIQUE INDEX "one_open_approval_per_call" ON "approvals_approval" ("tool_call_id") WHERE "status" IN ('pending', 'approved');
CREATE UNIQUE INDEX "one_consumed_approval_per_call" ON "approvals_approval" ("tool_call_id") WHERE "status" = 'consumed';
CREATE INDEX "approvals_approval_decided_by_id_16c3e602" ON "approvals_approval" ("decided_by_id");
CREATE INDEX "approvals_by_status" ON "approvals_approval" ("organization_id", "status", "id");
CREATE INDEX "decisions_by_time" ON "approvals_approval" ("organization_id", "decided_at") WHERE "decided_at" IS NOT NULL;
CREATE INDEX "decisions_by_person" ON "approvals_approval" ("organization_id", "decided_by_id", "decided_at", "id") WHERE ("decided_at" IS NOT NULL AND "standing_grant_id" IS NULL);
CREATE INDEX "denials_by_time" ON "approvals_approval" ("organization_id", "decided_at" DESC) WHERE "status" = 'denied';
CREATE INDEX "approvals_newest" ON "approvals_approval" ("organization_id", "id" DESC);
CREATE INDEX "approvals_by_end" ON "approvals_approval" ("organization_id", (COALESCE("decided_at", "requested_at")), "id") WHERE NOT ("status" = 'pending');
CREATE INDEX "decisions_by_shape" ON "approvals_approval" ("organization_id", "shape", "decided_at" DESC, "id" DESC) WHERE "decided_at" IS NOT NULL;
CREATE INDEX "approvals_of_run" ON "approvals_approval" ("run_id", "id");
CREATE INDEX "approvals_waiting" ON "approvals_approval" ("organization_id", "tool_call_id", "id") WHERE "status" = 'pending';
CREATE INDEX "approvals_expiring" ON "approvals_approval" ("expires_at") WHERE "status" = 'pending';
CREATE INDEX "approvals_starting" ON "approvals_approval" ("start_after") WHERE "status" = 'approved';
CREATE INDEX "approvals_of_grants" ON "approvals_approval" ("standing_grant_id", "id" DESC) WHERE "standing_grant_id" IS NOT NULL;
--
-- Create constraint decision_names_its_person on model approval
--
CREATE TABLE "new__approvals_approval" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "sequence" smallint unsigned NOT NULL CHECK ("sequence" >= 0), "kind" varchar(10) NOT NULL, "status" varchar(12) NOT NULL, "level" varchar(12) NOT NULL, "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "sentence" text NOT NULL, "preview" text NOT NULL CHECK ((JSON_VALID("preview") OR "preview" IS NULL)), "why" text NOT NULL, "words" text DEFAULT '' NOT NULL, "digest" varchar(64) NOT NULL, "shape" varchar(64) NOT NULL, "requested_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "expires_at" datetime NOT NULL, "decided_at" datetime NULL, "ruling" text NULL CHECK ((JSON_VALID("ruling") OR "ruling" IS NULL)), "broke_glass" bool DEFAULT 0 NOT NULL, "reason" text NOT NULL, "decision_id" varchar(200) NOT NULL, "bulk_id" char(32) NULL, "start_after" datetime NULL, "valid_until" datetime NULL, "consumed_at" datetime NULL, "decided_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "standing_grant_id" bigint NULL REFERENCES "standing_grants_standinggrant" ("id") DEFERRABLE INITIALLY DEFERRED, "tool_call_id" bigint NOT NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "approval_sequence_of_call" UNIQUE ("tool_call_id", "sequence"), CONSTRAINT "approval_status_is_known" CHECK ("status" IN ('pending', 'approved', 'denied', 'answered', 'expired', 'cancelled', 'superseded', 'consumed')), CONSTRAINT "decision_names_its_person" CHECK ((NOT ("status" IN ('approved', 'denied', 'answered', 'consumed')) OR ("decided_at" IS NOT NULL AND "decided_by_id" IS NOT NULL))));
INSERT INTO "new__approvals_approval" ("id", "sequence", "kind", "status", "level", "params", "sentence", "preview", "why", "words", "digest", "shape", "requested_at", "expires_at", "decided_at", "ruling", "broke_glass", "reason", "decision_id", "bulk_id", "start_after", "valid_until", "consumed_at", "decided_by_id", "organization_id", "run_id", "standing_grant_id", "tool_call_id") SELECT "id", "sequence", "kind", "status", "level", "params", "sentence", "preview", "why", "words", "digest", "shape", "requested_at", "expires_at", "decided_at", "ruling", "broke_glass", "reason", "decision_id", "bulk_id", "start_after", "valid_until", "consumed_at", "decided_by_id", "organization_id", "run_id", "standing_grant_id", "tool_call_id" FROM "approvals_approval";
DROP TABLE "approvals_approval";
ALTER TABLE "new__approvals_approval" RENAME TO "approvals_approval";
CREATE UNIQUE INDEX "one_open_approval_per_call" ON "approvals_approval" ("tool_call_id") WHERE "status" IN ('pending', 'approved');
CREATE UNIQUE INDEX "one_consumed_approval_per_call" ON "approvals_approval" ("tool_call_id") WHERE "status" = 'consumed';
CREATE INDEX "approvals_approval_decided_by_id_16c3e602" ON "approvals_approval" ("decided_by_id");
CREATE INDEX "approvals_by_status" ON "approvals_approval" ("organization_id", "status", "id");
CREATE INDEX "decisions_by_time" ON "approvals_approval" ("organization_id", "decided_at") WHERE "decided_at" IS NOT NULL;
CREATE INDEX "decisions_by_person" ON "approvals_approval" ("organization_id", "decided_by_id", "decided_at", "id") WHERE ("decided_at" IS NOT NULL AND "standing_grant_id" IS NULL);
CREATE INDEX "denials_by_time" ON "approvals_approval" ("organization_id", "decided_at" DESC) WHERE "status" = 'denied';
CREATE INDEX "approvals_newest" ON "approvals_approval" ("organization_id", "id" DESC);
CREATE INDEX "approvals_by_end" ON "approvals_approval" ("organization_id", (COALESCE("decided_at", "requested_at")), "id") WHERE NOT ("status" = 'pending');
CREATE INDEX "decisions_by_shape" ON "approvals_approval" ("organization_id", "shape", "decided_at" DESC, "id" DESC) WHERE "decided_at" IS NOT NULL;
CREATE INDEX "approvals_of_run" ON "approvals_approval" ("run_id", "id");
CREATE INDEX "approvals_waiting" ON "approvals_approval" ("organization_id", "tool_call_id", "id") WHERE "status" = 'pending';
CREATE INDEX "approvals_expiring" ON "approvals_approval" ("expires_at") WHERE "status" = 'pending';
CREATE INDEX "approvals_starting" ON "approvals_approval" ("start_after") WHERE "status" = 'approved';
CREATE INDEX "approvals_of_grants" ON "approvals_approval" ("standing_grant_id", "id" DESC) WHERE "standing_grant_id" IS NOT NULL;
--
-- Create constraint consumed_approval_has_a_time on model approval
--
CREATE TABLE "new__approvals_approval" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "sequence" smallint unsigned NOT NULL CHECK ("sequence" >= 0), "kind" varchar(10) NOT NULL, "status" varchar(12) NOT NULL, "level" varchar(12) NOT NULL, "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "sentence" text NOT NULL, "preview" text NOT NULL CHECK ((JSON_VALID("preview") OR "preview" IS NULL)), "why" text NOT NULL, "words" text DEFAULT '' NOT NULL, "digest" varchar(64) NOT NULL, "shape" varchar(64) NOT NULL, "requested_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "expires_at" datetime NOT NULL, "decided_at" datetime NULL, "ruling" text NULL CHECK ((JSON_VALID("ruling") OR "ruling" IS NULL)), "broke_glass" bool DEFAULT 0 NOT NULL, "reason" text NOT NULL, "decision_id" varchar(200) NOT NULL, "bulk_id" char(32) NULL, "start_after" datetime NULL, "valid_until" datetime NULL, "consumed_at" datetime NULL, "decided_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "standing_grant_id" bigint NULL REFERENCES "standing_grants_standinggrant" ("id") DEFERRABLE INITIALLY DEFERRED, "tool_call_id" bigint NOT NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "approval_sequence_of_call" UNIQUE ("tool_call_id", "sequence"), CONSTRAINT "approval_status_is_known" CHECK ("status" IN ('pending', 'approved', 'denied', 'answered', 'expired', 'cancelled', 'superseded', 'consumed')), CONSTRAINT "decision_names_its_person" CHECK ((NOT ("status" IN ('approved', 'denied', 'answered', 'consumed')) OR ("decided_at" IS NOT NULL AND "decided_by_id" IS NOT NULL))), CONSTRAINT "consumed_approval_has_a_time" CHECK ((("consumed_at" IS NOT NULL AND "status" = 'consumed') OR (NOT ("status" = 'consumed') AND "consumed_at" IS NULL))));
INSERT INTO "new__approvals_approval" ("id", "sequence", "kind", "status", "level", "params", "sentence", "preview", "why", "words", "digest", "shape", "requested_at", "expires_at", "decided_at", "ruling", "broke_glass", "reason", "decision_id", "bulk_id", "start_after", "valid_until", "consumed_at", "decided_by_id", "organization_id", "run_id", "standing_grant_id", "tool_call_id") SELECT "id", "sequence", "kind", "status", "level", "params", "sentence", "preview", "why", "words", "digest", "shape", "requested_at", "expires_at", "decided_at", "ruling", "broke_glass", "reason", "decision_id", "bulk_id", "start_after", "valid_until", "consumed_at", "decided_by_id", "organization_id", "run_id", "standing_grant_id", "tool_call_id" FROM "approvals_approval";
DROP TABLE "approvals_approval";
ALTER TABLE "new__approvals_approval" RENAME TO "approvals_approval";
CREATE UNIQUE INDEX "one_open_approval_per_call" ON "approvals_approval" ("tool_call_id") WHERE "status" IN ('pending', 'approved');
CREATE UNIQUE INDEX "one_consumed_approval_per_call" ON "approvals_approval" ("tool_call_id") WHERE "status" = 'consumed';
CREATE INDEX "approvals_approval_decided_by_id_16c3e602" ON "approvals_approval" ("decided_by_id");
CREATE INDEX "approvals_by_status" ON "approvals_approval" ("organization_id", "status", "id");
CREATE INDEX "decisions_by_time" ON "approvals_approval" ("organization_id", "decided_at") WHERE "decided_at" IS NOT NULL;
CREATE INDEX "decisions_by_person" ON "approvals_approval" ("organization_id", "decided_by_id", "decided_at", "id") WHERE ("decided_at" IS NOT NULL AND "standing_grant_id" IS NULL);
CREATE INDEX "denials_by_time" ON "approvals_approval" ("organization_id", "decided_at" DESC) WHERE "status" = 'denied';
CREATE INDEX "approvals_newest" ON "approvals_approval" ("organization_id", "id" DESC);
CREATE INDEX "approvals_by_end" ON "approvals_approval" ("organization_id", (COALESCE("decided_at", "requested_at")), "id") WHERE NOT ("status" = 'pending');
CREATE INDEX "decisions_by_shape" ON "approvals_approval" ("organization_id", "shape", "decided_at" DESC, "id" DESC) WHERE "decided_at" IS NOT NULL;
CREATE INDEX "approvals_of_run" ON "approvals_approval" ("run_id", "id");
CREATE INDEX "approvals_waiting" ON "approvals_approval" ("organization_id", "tool_call_id", "id") WHERE "status" = 'pending';
CREATE INDEX "approvals_expiring" ON "approvals_approval" ("expires_at") WHERE "status" = 'pending';
CREATE INDEX "approvals_starting" ON "approvals_approval" ("start_after") WHERE "status" = 'approved';
CREATE INDEX "approvals_of_grants" ON "approvals_approval" ("standing_grant_id", "id" DESC) WHERE "standing_grant_id" IS NOT NULL;
--
-- Create constraint saved_view_names_are_unique on model savedview
--
CREATE TABLE "new__approvals_savedview" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(60) NOT NULL, "query" varchar(500) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "saved_view_names_are_unique" UNIQUE ("organization_id", "user_id", "name"));
INSERT INTO "new__approvals_savedview" ("id", "name", "query", "organization_id", "user_id") SELECT "id", "name", "query", "organization_id", "user_id" FROM "approvals_savedview";
DROP TABLE "approvals_savedview";
ALTER TABLE "new__approvals_savedview" RENAME TO "approvals_savedview";
CREATE INDEX "approvals_savedview_organization_id_ba40f19f" ON "approvals_savedview" ("organization_id");
CREATE INDEX "approvals_savedview_user_id_9dd5b00e" ON "approvals_savedview" ("user_id");
--
-- Create constraint one_snooze_per_person_and_call on model snooze
--
CREATE TABLE "new__approvals_snooze" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "until" datetime NOT NULL, "tool_call_id" bigint NOT NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_snooze_per_person_and_call" UNIQUE ("user_id", "tool_call_id"));
INSERT INTO "new__approvals_snooze" ("id", "until", "tool_call_id", "user_id") SELECT "id", "until", "tool_call_id", "user_id" FROM "approvals_snooze";
DROP TABLE "approvals_snooze";
ALTER TABLE "new__approvals_snooze" RENAME TO "approvals_snooze";
CREATE INDEX "approvals_snooze_tool_call_id_2e464cfe" ON "approvals_snooze" ("tool_call_id");
CREATE INDEX "approvals_snooze_user_id_ec9da4e6" ON "approvals_snooze" ("user_id");
--
-- Create index votes_of_approval on field(s) approval, id of model vote
--
CREATE INDEX "votes_of_approval" ON "approvals_vote" ("approval_id", "id");
--
-- Create constraint one_vote_per_person on model vote
--
CREATE UNIQUE INDEX "one_vote_per_person" ON "approvals_vote" ("approval_id", "voter_id") WHERE "withdrawn_at" IS NULL;
--
-- Create constraint one_vote_for_each_person on model vote
--
CREATE UNIQUE INDEX "one_vote_for_each_person" ON "approvals_vote" ("approval_id", "deputy_for_id") WHERE ("deputy_for_id" IS NOT NULL AND "withdrawn_at" IS NULL);
--
-- Create constraint bulk_is_withheld_once on model withheldbulk
--
CREATE TABLE "new__approvals_withheldbulk" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "bulk_id" char(32) NOT NULL, "withheld_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "bulk_is_withheld_once" UNIQUE ("organization_id", "bulk_id", "user_id"));
INSERT INTO "new__approvals_withheldbulk" ("id", "bulk_id", "withheld_at", "organization_id", "user_id") SELECT "id", "bulk_id", "withheld_at", "organization_id", "user_id" FROM "approvals_withheldbulk";
DROP TABLE "approvals_withheldbulk";
ALTER TABLE "new__approvals_withheldbulk" RENAME TO "approvals_withheldbulk";
CREATE INDEX "approvals_withheldbulk_user_id_a90a815c" ON "approvals_withheldbulk" ("user_id");
-- migration contenttypes.0002_remove_content_type_name
--
-- Change Meta options on contenttype
--
-- (no-op)
--
-- Alter field name on contenttype
--
CREATE TABLE "new__django_content_type" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(100) NULL, "app_label" varchar(100) NOT NULL, "model" varchar(100) NOT NULL);
INSERT INTO "new__django_content_type" ("id", "app_label", "model", "name") SELECT "id", "app_label", "model", "name" FROM "django_content_type";
DROP TABLE "django_content_type";
ALTER TABLE "new__django_content_type" RENAME TO "django_content_type";
CREATE UNIQUE INDEX "django_content_type_app_label_model_76bd3d3b_uniq" ON "django_content_type" ("app_label", "model");
--
-- Raw Python operation
--
-- THIS OPERATION CANNOT BE WRITTEN AS SQL
--
-- Remove field name from contenttype
--
ALTER TABLE "django_content_type" DROP COLUMN "name";
-- migration auth.0002_alter_permission_name_max_length
--
-- Alter field name on permission
--
CREATE TABLE "new__auth_permission" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(255) NOT NULL, "content_type_id" integer NOT NULL REFERENCES "django_content_type" ("id") DEFERRABLE INITIALLY DEFERRED, "codename" varchar(100) NOT NULL);
INSERT INTO "new__auth_permission" ("id", "content_type_id", "codename", "name") SELECT "id", "content_type_id", "codename", "name" FROM "auth_permission";
DROP TABLE "auth_permission";
ALTER TABLE "new__auth_permission" RENAME TO "auth_permission";
CREATE UNIQUE INDEX "auth_permission_content_type_id_codename_01ab375a_uniq" ON "auth_permission" ("content_type_id", "codename");
CREATE INDEX "auth_permission_content_type_id_2f476e4b" ON "auth_permission" ("content_type_id");
-- migration auth.0003_alter_user_email_max_length
--
-- Alter field email on user
--
CREATE TABLE "new__auth_user" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "email" varchar(254) NOT NULL, "password" varchar(128) NOT NULL, "last_login" datetime NOT NULL, "is_superuser" bool NOT NULL, "username" varchar(30) NOT NULL UNIQUE, "first_name" varchar(30) NOT NULL, "last_name" varchar(30) NOT NULL, "is_staff" bool NOT NULL, "is_active" bool NOT NULL, "date_joined" datetime NOT NULL);
INSERT INTO "new__auth_user" ("id", "password", "last_login", "is_superuser", "username", "first_name", "last_name", "is_staff", "is_active", "date_joined", "email") SELECT "id", "password", "last_login", "is_superuser", "username", "first_name", "last_name", "is_staff", "is_active", "date_joined", "email" FROM "auth_user";
DROP TABLE "auth_user";
ALTER TABLE "new__auth_user" RENAME TO "auth_user";
-- migration auth.0004_alter_user_username_opts
--
-- Alter field username on user
--
-- (no-op)
-- migration auth.0005_alter_user_last_login_null
--
-- Alter field last_login on user
--
CREATE TABLE "new__auth_user" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "last_login" datetime NULL, "password" varchar(128) NOT NULL, "is_superuser" bool NOT NULL, "username" varchar(30) NOT NULL UNIQUE, "first_name" varchar(30) NOT NULL, "last_name" varchar(30) NOT NULL, "email" varchar(254) NOT NULL, "is_staff" bool NOT NULL, "is_active" bool NOT NULL, "date_joined" datetime NOT NULL);
INSERT INTO "new__auth_user" ("id", "password", "is_superuser", "username", "first_name", "last_name", "email", "is_staff", "is_active", "date_joined", "last_login") SELECT "id", "password", "is_superuser", "username", "first_name", "last_name", "email", "is_staff", "is_active", "date_joined", "last_login" FROM "auth_user";
DROP TABLE "auth_user";
ALTER TABLE "new__auth_user" RENAME TO "auth_user";
-- migration auth.0006_require_contenttypes_0002

-- migration auth.0007_alter_validators_add_error_messages
--
-- Alter field username on user
--
-- (no-op)
-- migration auth.0008_alter_user_username_max_length
--
-- Alter field username on user
--
CREATE TABLE "new__auth_user" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "username" varchar(150) NOT NULL UNIQUE, "password" varchar(128) NOT NULL, "last_login" datetime NULL, "is_superuser" bool NOT NULL, "first_name" varchar(30) NOT NULL, "last_name" varchar(30) NOT NULL, "email" varchar(254) NOT NULL, "is_staff" bool NOT NULL, "is_active" bool NOT NULL, "date_joined" datetime NOT NULL);
INSERT INTO "new__auth_user" ("id", "password", "last_login", "is_superuser", "first_name", "last_name", "email", "is_staff", "is_active", "date_joined", "username") SELECT "id", "password", "last_login", "is_superuser", "first_name", "last_name", "email", "is_staff", "is_active", "date_joined", "username" FROM "auth_user";
DROP TABLE "auth_user";
ALTER TABLE "new__auth_user" RENAME TO "auth_user";
-- migration auth.0009_alter_user_last_name_max_length
--
-- Alter field last_name on user
--
CREATE TABLE "new__auth_user" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "last_name" varchar(150) NOT NULL, "password" varchar(128) NOT NULL, "last_login" datetime NULL, "is_superuser" bool NOT NULL, "username" varchar(150) NOT NULL UNIQUE, "first_name" varchar(30) NOT NULL, "email" varchar(254) NOT NULL, "is_staff" bool NOT NULL, "is_active" bool NOT NULL, "date_joined" datetime NOT NULL);
INSERT INTO "new__auth_user" ("id", "password", "last_login", "is_superuser", "username", "first_name", "email", "is_staff", "is_active", "date_joined", "last_name") SELECT "id", "password", "last_login", "is_superuser", "username", "first_name", "email", "is_staff", "is_active", "date_joined", "last_name" FROM "auth_user";
DROP TABLE "auth_user";
ALTER TABLE "new__auth_user" RENAME TO "auth_user";
-- migration auth.0010_alter_group_name_max_length
--
-- Alter field name on group
--
CREATE TABLE "new__auth_group" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(150) NOT NULL UNIQUE);
INSERT INTO "new__auth_group" ("id", "name") SELECT "id", "name" FROM "auth_group";
DROP TABLE "auth_group";
ALTER TABLE "new__auth_group" RENAME TO "auth_group";
-- migration auth.0011_update_proxy_permissions
--
-- Raw Python operation
--
-- THIS OPERATION CANNOT BE WRITTEN AS SQL
-- migration auth.0012_alter_user_first_name_max_length
--
-- Alter field first_name on user
--
CREATE TABLE "new__auth_user" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "first_name" varchar(150) NOT NULL, "password" varchar(128) NOT NULL, "last_login" datetime NULL, "is_superuser" bool NOT NULL, "username" varchar(150) NOT NULL UNIQUE, "last_name" varchar(150) NOT NULL, "email" varchar(254) NOT NULL, "is_staff" bool NOT NULL, "is_active" bool NOT NULL, "date_joined" datetime NOT NULL);
INSERT INTO "new__auth_user" ("id", "password", "last_login", "is_superuser", "username", "last_name", "email", "is_staff", "is_active", "date_joined", "first_name") SELECT "id", "password", "last_login", "is_superuser", "username", "last_name", "email", "is_staff", "is_active", "date_joined", "first_name" FROM "auth_user";
DROP TABLE "auth_user";
ALTER TABLE "new__auth_user" RENAME TO "auth_user";
-- migration axes.0001_initial
--
-- Create model AccessAttempt
--
CREATE TABLE "axes_accessattempt" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_agent" varchar(255) NOT NULL, "ip_address" char(39) NULL, "username" varchar(255) NULL, "trusted" bool NOT NULL, "http_accept" varchar(1025) NOT NULL, "path_info" varchar(255) NOT NULL, "attempt_time" datetime NOT NULL, "get_data" text NOT NULL, "post_data" text NOT NULL, "failures_since_start" integer unsigned NOT NULL CHECK ("failures_since_start" >= 0));
--
-- Create model AccessLog
--
CREATE TABLE "axes_accesslog" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_agent" varchar(255) NOT NULL, "ip_address" char(39) NULL, "username" varchar(255) NULL, "trusted" bool NOT NULL, "http_accept" varchar(1025) NOT NULL, "path_info" varchar(255) NOT NULL, "attempt_time" datetime NOT NULL, "logout_time" datetime NULL);
-- migration axes.0002_auto_20151217_2044
--
-- Alter field ip_address on accessattempt
--
CREATE TABLE "new__axes_accessattempt" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "ip_address" char(39) NULL, "user_agent" varchar(255) NOT NULL, "username" varchar(255) NULL, "trusted" bool NOT NULL, "http_accept" varchar(1025) NOT NULL, "path_info" varchar(255) NOT NULL, "attempt_time" datetime NOT NULL, "get_data" text NOT NULL, "post_data" text NOT NULL, "failures_since_start" integer unsigned NOT NULL CHECK ("failures_since_start" >= 0));
INSERT INTO "new__axes_accessattempt" ("id", "user_agent", "username", "trusted", "http_accept", "path_info", "attempt_time", "get_data", "post_data", "failures_since_start", "ip_address") SELECT "id", "user_agent", "username", "trusted", "http_accept", "path_info", "attempt_time", "get_data", "post_data", "failures_since_start", "ip_address" FROM "axes_accessattempt";
DROP TABLE "axes_accessattempt";
ALTER TABLE "new__axes_accessattempt" RENAME TO "axes_accessattempt";
CREATE INDEX "axes_accessattempt_ip_address_10922d9c" ON "axes_accessattempt" ("ip_address");
--
-- Alter field trusted on accessattempt
--
CREATE TABLE "new__axes_accessattempt" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_agent" varchar(255) NOT NULL, "ip_address" char(39) NULL, "username" varchar(255) NULL, "http_accept" varchar(1025) NOT NULL, "path_info" varchar(255) NOT NULL, "attempt_time" datetime NOT NULL, "get_data" text NOT NULL, "post_data" text NOT NULL, "failures_since_start" integer unsigned NOT NULL CHECK ("failures_since_start" >= 0), "trusted" bool NOT NULL);
INSERT INTO "new__axes_accessattempt" ("id", "user_agent", "ip_address", "username", "http_accept", "path_info", "attempt_time", "get_data", "post_data", "failures_since_start", "trusted") SELECT "id", "user_agent", "ip_address", "username", "http_accept", "path_info", "attempt_time", "get_data", "post_data", "failures_since_start", "trusted" FROM "axes_accessattempt";
DROP TABLE "axes_accessattempt";
ALTER TABLE "new__axes_accessattempt" RENAME TO "axes_accessattempt";
CREATE INDEX "axes_accessattempt_ip_address_10922d9c" ON "axes_accessattempt" ("ip_address");
CREATE INDEX "axes_accessattempt_trusted_0eddf52e" ON "axes_accessattempt" ("trusted");
--
-- Alter field user_agent on accessattempt
--
CREATE TABLE "new__axes_accessattempt" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "ip_address" char(39) NULL, "username" varchar(255) NULL, "trusted" bool NOT NULL, "http_accept" varchar(1025) NOT NULL, "path_info" varchar(255) NOT NULL, "attempt_time" datetime NOT NULL, "get_data" text NOT NULL, "post_data" text NOT NULL, "failures_since_start" integer unsigned NOT NULL CHECK ("failures_since_start" >= 0), "user_agent" varchar(255) NOT NULL);
INSERT INTO "new__axes_accessattempt" ("id", "ip_address", "username", "trusted", "http_accept", "path_info", "attempt_time", "get_data", "post_data", "failures_since_start", "user_agent") SELECT "id", "ip_address", "username", "trusted", "http_accept", "path_info", "attempt_time", "get_data", "post_data", "failures_since_start", "user_agent" FROM "axes_accessattempt";
DROP TABLE "axes_accessattempt";
ALTER TABLE "new__axes_accessattempt" RENAME TO "axes_accessattempt";
CREATE INDEX "axes_accessattempt_ip_address_10922d9c" ON "axes_accessattempt" ("ip_address");
CREATE INDEX "axes_accessattempt_trusted_0eddf52e" ON "axes_accessattempt" ("trusted");
CREATE INDEX "axes_accessattempt_user_agent_ad89678b" ON "axes_accessattempt" ("user_agent");
--
-- Alter field username on accessattempt
--
CREATE TABLE "new__axes_accessattempt" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_agent" varchar(255) NOT NULL, "ip_address" char(39) NULL, "trusted" bool NOT NULL, "http_accept" varchar(1025) NOT NULL, "path_info" varchar(255) NOT NULL, "attempt_time" datetime NOT NULL, "get_data" text NOT NULL, "post_data" text NOT NULL, "failures_since_start" integer unsigned NOT NULL CHECK ("failures_since_start" >= 0), "username" varchar(255) NULL);
INSERT INTO "new__axes_accessattempt" ("id", "user_agent", "ip_address", "trusted", "http_accept", "path_info", "attempt_time", "get_data", "post_data", "failures_since_start", "username") SELECT "id", "user_agent", "ip_address", "trusted", "http_accept", "path_info", "attempt_time", "get_data", "post_data", "failures_since_start", "username" FROM "axes_accessattempt";
DROP TABLE "axes_accessattempt";
ALTER TABLE "new__axes_accessattempt" RENAME TO "axes_accessattempt";
CREATE INDEX "axes_accessattempt_user_agent_ad89678b" ON "axes_accessattempt" ("user_agent");
CREATE INDEX "axes_accessattempt_ip_address_10922d9c" ON "axes_accessattempt" ("ip_address");
CREATE INDEX "axes_accessattempt_trusted_0eddf52e" ON "axes_accessattempt" ("trusted");
CREATE INDEX "axes_accessattempt_username_3f2d4ca0" ON "axes_accessattempt" ("username");
--
-- Alter field ip_address on accesslog
--
CREATE TABLE "new__axes_accesslog" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_agent" varchar(255) NOT NULL, "username" varchar(255) NULL, "trusted" bool NOT NULL, "http_accept" varchar(1025) NOT NULL, "path_info" varchar(255) NOT NULL, "attempt_time" datetime NOT NULL, "logout_time" datetime NULL, "ip_address" char(39) NULL);
INSERT INTO "new__axes_accesslog" ("id", "user_agent", "username", "trusted", "http_accept", "path_info", "attempt_time", "logout_time", "ip_address") SELECT "id", "user_agent", "username", "trusted", "http_accept", "path_info", "attempt_time", "logout_time", "ip_address" FROM "axes_accesslog";
DROP TABLE "axes_accesslog";
ALTER TABLE "new__axes_accesslog" RENAME TO "axes_accesslog";
CREATE INDEX "axes_accesslog_ip_address_86b417e5" ON "axes_accesslog" ("ip_address");
--
-- Alter field trusted on accesslog
--
CREATE TABLE "new__axes_accesslog" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_agent" varchar(255) NOT NULL, "ip_address" char(39) NULL, "username" varchar(255) NULL, "http_accept" varchar(1025) NOT NULL, "path_info" varchar(255) NOT NULL, "attempt_time" datetime NOT NULL, "logout_time" datetime NULL, "trusted" bool NOT NULL);
INSERT INTO "new__axes_accesslog" ("id", "user_agent", "ip_address", "username", "http_accept", "path_info", "attempt_time", "logout_time", "trusted") SELECT "id", "user_agent", "ip_address", "username", "http_accept", "path_info", "attempt_time", "logout_time", "trusted" FROM "axes_accesslog";
DROP TABLE "axes_accesslog";
ALTER TABLE "new__axes_accesslog" RENAME TO "axes_accesslog";
CREATE INDEX "axes_accesslog_ip_address_86b417e5" ON "axes_accesslog" ("ip_address");
CREATE INDEX "axes_accesslog_trusted_496c5681" ON "axes_accesslog" ("trusted");
--
-- Alter field user_agent on accesslog
--
CREATE TABLE "new__axes_accesslog" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "ip_address" char(39) NULL, "username" varchar(255) NULL, "trusted" bool NOT NULL, "http_accept" varchar(1025) NOT NULL, "path_info" varchar(255) NOT NULL, "attempt_time" datetime NOT NULL, "logout_time" datetime NULL, "user_agent" varchar(255) NOT NULL);
INSERT INTO "new__axes_accesslog" ("id", "ip_address", "username", "trusted", "http_accept", "path_info", "attempt_time", "logout_time", "user_agent") SELECT "id", "ip_address", "username", "trusted", "http_accept", "path_info", "attempt_time", "logout_time", "user_agent" FROM "axes_accesslog";
DROP TABLE "axes_accesslog";
ALTER TABLE "new__axes_accesslog" RENAME TO "axes_accesslog";
CREATE INDEX "axes_accesslog_ip_address_86b417e5" ON "axes_accesslog" ("ip_address");
CREATE INDEX "axes_accesslog_trusted_496c5681" ON "axes_accesslog" ("trusted");
CREATE INDEX "axes_accesslog_user_agent_0e659004" ON "axes_accesslog" ("user_agent");
--
-- Alter field username on accesslog
--
CREATE TABLE "new__axes_accesslog" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_agent" varchar(255) NOT NULL, "ip_address" char(39) NULL, "trusted" bool NOT NULL, "http_accept" varchar(1025) NOT NULL, "path_info" varchar(255) NOT NULL, "attempt_time" datetime NOT NULL, "logout_time" datetime NULL, "username" varchar(255) NULL);
INSERT INTO "new__axes_accesslog" ("id", "user_agent", "ip_address", "trusted", "http_accept", "path_info", "attempt_time", "logout_time", "username") SELECT "id", "user_agent", "ip_address", "trusted", "http_accept", "path_info", "attempt_time", "logout_time", "username" FROM "axes_accesslog";
DROP TABLE "axes_accesslog";
ALTER TABLE "new__axes_accesslog" RENAME TO "axes_accesslog";
CREATE INDEX "axes_accesslog_user_agent_0e659004" ON "axes_accesslog" ("user_agent");
CREATE INDEX "axes_accesslog_ip_address_86b417e5" ON "axes_accesslog" ("ip_address");
CREATE INDEX "axes_accesslog_trusted_496c5681" ON "axes_accesslog" ("trusted");
CREATE INDEX "axes_accesslog_username_df93064b" ON "axes_accesslog" ("username");
-- migration axes.0003_auto_20160322_0929
--
-- Alter field failures_since_start on accessattempt
--
-- (no-op)
--
-- Alter field get_data on accessattempt
--
-- (no-op)
--
-- Alter field http_accept on accessattempt
--
-- (no-op)
--
-- Alter field ip_address on accessattempt
--
-- (no-op)
--
-- Alter field path_info on accessattempt
--
-- (no-op)
--
-- Alter field post_data on accessattempt
--
-- (no-op)
--
-- Alter field http_accept on accesslog
--
-- (no-op)
--
-- Alter field ip_address on accesslog
--
-- (no-op)
--
-- Alter field path_info on accesslog
--
-- (no-op)
-- migration axes.0004_auto_20181024_1538
--
-- Change Meta options on accessattempt
--
-- (no-op)
--
-- Change Meta options on accesslog
--
-- (no-op)
--
-- Alter field attempt_time on accessattempt
--
-- (no-op)
--
-- Alter field user_agent on accessattempt
--
-- (no-op)
--
-- Alter field username on accessattempt
--
-- (no-op)
--
-- Alter field attempt_time on accesslog
--
-- (no-op)
--
-- Alter field logout_time on accesslog
--
-- (no-op)
--
-- Alter field user_agent on accesslog
--
-- (no-op)
--
-- Alter field username on accesslog
--
-- (no-op)
-- migration axes.0005_remove_accessattempt_trusted
--
-- Remove field trusted from accessattempt
--
CREATE TABLE "new__axes_accessattempt" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_agent" varchar(255) NOT NULL, "ip_address" char(39) NULL, "username" varchar(255) NULL, "http_accept" varchar(1025) NOT NULL, "path_info" varchar(255) NOT NULL, "attempt_time" datetime NOT NULL, "get_data" text NOT NULL, "post_data" text NOT NULL, "failures_since_start" integer unsigned NOT NULL CHECK ("failures_since_start" >= 0));
INSERT INTO "new__axes_accessattempt" ("id", "user_agent", "ip_address", "username", "http_accept", "path_info", "attempt_time", "get_data", "post_data", "failures_since_start") SELECT "id", "user_agent", "ip_address", "username", "http_accept", "path_info", "attempt_time", "get_data", "post_data", "failures_since_start" FROM "axes_accessattempt";
DROP TABLE "axes_accessattempt";
ALTER TABLE "new__axes_accessattempt" RENAME TO "axes_accessattempt";
CREATE INDEX "axes_accessattempt_user_agent_ad89678b" ON "axes_accessattempt" ("user_agent");
CREATE INDEX "axes_accessattempt_ip_address_10922d9c" ON "axes_accessattempt" ("ip_address");
CREATE INDEX "axes_accessattempt_username_3f2d4ca0" ON "axes_accessattempt" ("username");
-- migration axes.0006_remove_accesslog_trusted
--
-- Remove field trusted from accesslog
--
CREATE TABLE "new__axes_accesslog" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_agent" varchar(255) NOT NULL, "ip_address" char(39) NULL, "username" varchar(255) NULL, "http_accept" varchar(1025) NOT NULL, "path_info" varchar(255) NOT NULL, "attempt_time" datetime NOT NULL, "logout_time" datetime NULL);
INSERT INTO "new__axes_accesslog" ("id", "user_agent", "ip_address", "username", "http_accept", "path_info", "attempt_time", "logout_time") SELECT "id", "user_agent", "ip_address", "username", "http_accept", "path_info", "attempt_time", "logout_time" FROM "axes_accesslog";
DROP TABLE "axes_accesslog";
ALTER TABLE "new__axes_accesslog" RENAME TO "axes_accesslog";
CREATE INDEX "axes_accesslog_user_agent_0e659004" ON "axes_accesslog" ("user_agent");
CREATE INDEX "axes_accesslog_ip_address_86b417e5" ON "axes_accesslog" ("ip_address");
CREATE INDEX "axes_accesslog_username_df93064b" ON "axes_accesslog" ("username");
-- migration axes.0007_alter_accessattempt_unique_together
--
-- Raw Python operation
--
-- THIS OPERATION CANNOT BE WRITTEN AS SQL
--
-- Alter unique_together for accessattempt (1 constraint(s))
--
CREATE UNIQUE INDEX "axes_accessattempt_username_ip_address_user_agent_8ea22282_uniq" ON "axes_accessattempt" ("username", "ip_address", "user_agent");
-- migration axes.0008_accessfailurelog
--
-- Create model AccessFailureLog
--
CREATE TABLE "axes_accessfailurelog" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_agent" varchar(255) NOT NULL, "ip_address" char(39) NULL, "username" varchar(255) NULL, "http_accept" varchar(1025) NOT NULL, "path_info" varchar(255) NOT NULL, "attempt_time" datetime NOT NULL, "locked_out" bool NOT NULL);
CREATE INDEX "axes_accessfailurelog_user_agent_ea145dda" ON "axes_accessfailurelog" ("user_agent");
CREATE INDEX "axes_accessfailurelog_ip_address_2e9f5a7f" ON "axes_accessfailurelog" ("ip_address");
CREATE INDEX "axes_accessfailurelog_username_a8b7e8a4" ON "axes_accessfailurelog" ("username");
-- migration axes.0009_add_session_hash
--
-- Add field session_hash to accesslog
--
CREATE TABLE "new__axes_accesslog" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "session_hash" varchar(64) NOT NULL, "user_agent" varchar(255) NOT NULL, "ip_address" char(39) NULL, "username" varchar(255) NULL, "http_accept" varchar(1025) NOT NULL, "path_info" varchar(255) NOT NULL, "attempt_time" datetime NOT NULL, "logout_time" datetime NULL);
INSERT INTO "new__axes_accesslog" ("id", "user_agent", "ip_address", "username", "http_accept", "path_info", "attempt_time", "logout_time", "session_hash") SELECT "id", "user_agent", "ip_address", "username", "http_accept", "path_info", "attempt_time", "logout_time", '' FROM "axes_accesslog";
DROP TABLE "axes_accesslog";
ALTER TABLE "new__axes_accesslog" RENAME TO "axes_accesslog";
CREATE INDEX "axes_accesslog_user_agent_0e659004" ON "axes_accesslog" ("user_agent");
CREATE INDEX "axes_accesslog_ip_address_86b417e5" ON "axes_accesslog" ("ip_address");
CREATE INDEX "axes_accesslog_username_df93064b" ON "axes_accesslog" ("username");
-- migration axes.0010_accessattemptexpiration
--
-- Create model AccessAttemptExpiration
--
CREATE TABLE "axes_accessattemptexpiration" ("access_attempt_id" integer NOT NULL PRIMARY KEY REFERENCES "axes_accessattempt" ("id") DEFERRABLE INITIALLY DEFERRED, "expires_at" datetime NOT NULL);
-- migration connections.0001_initial
--
-- Create model Source
--
CREATE TABLE "connections_source" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "kind" varchar(10) NOT NULL, "name" varchar(30) NOT NULL, "address" varchar(1000) NOT NULL, "document" text NOT NULL, "base_url" varchar(1000) NOT NULL, "command" text NOT NULL CHECK ((JSON_VALID("command") OR "command" IS NULL)), "environment" text NOT NULL CHECK ((JSON_VALID("environment") OR "environment" IS NULL)), "authentication" varchar(7) NOT NULL, "key_name" varchar(100) NOT NULL, "key_place" varchar(6) NOT NULL, "token_url" varchar(1000) NOT NULL, "scopes" varchar(500) NOT NULL, "service" varchar(80) NOT NULL, "timeout_s" smallint unsigned NOT NULL CHECK ("timeout_s" >= 0), "is_active" bool NOT NULL, "title" varchar(200) NOT NULL, "described_version" varchar(60) NOT NULL, "problem" varchar(500) NOT NULL, "told" varchar(2000) NOT NULL, "checked_at" datetime NULL, "refreshed_at" datetime NULL, "due_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model SourceTool
--
CREATE TABLE "connections_sourcetool" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "key" varchar(500) NOT NULL, "tool" varchar(120) NOT NULL, "title" varchar(200) NOT NULL, "accepted_title" varchar(200) DEFAULT '' NOT NULL, "tags" text NOT NULL CHECK ((JSON_VALID("tags") OR "tags" IS NULL)), "definition" text NOT NULL CHECK ((JSON_VALID("definition") OR "definition" IS NULL)), "hash" varchar(64) NOT NULL, "accepted_hash" varchar(64) NOT NULL, "accepted_definition" text NOT NULL CHECK ((JSON_VALID("accepted_definition") OR "accepted_definition" IS NULL)), "inferred_level" varchar(11) NOT NULL, "level" varchar(11) NOT NULL, "is_chosen" bool NOT NULL, "gone_at" datetime NULL, "source_id" bigint NOT NULL REFERENCES "connections_source" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model AllowedHost
--
CREATE TABLE "connections_allowedhost" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "host" varchar(253) NOT NULL, "without_card" bool NOT NULL, "may_be_private" bool NOT NULL, "opened_by_superuser" bool NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_row_per_host" UNIQUE ("organization_id", "host"));
--
-- Create constraint one_source_per_name on model source
--
CREATE TABLE "new__connections_source" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "kind" varchar(10) NOT NULL, "name" varchar(30) NOT NULL, "address" varchar(1000) NOT NULL, "document" text NOT NULL, "base_url" varchar(1000) NOT NULL, "command" text NOT NULL CHECK ((JSON_VALID("command") OR "command" IS NULL)), "environment" text NOT NULL CHECK ((JSON_VALID("environment") OR "environment" IS NULL)), "authentication" varchar(7) NOT NULL, "key_name" varchar(100) NOT NULL, "key_place" varchar(6) NOT NULL, "token_url" varchar(1000) NOT NULL, "scopes" varchar(500) NOT NULL, "service" varchar(80) NOT NULL, "timeout_s" smallint unsigned NOT NULL CHECK ("timeout_s" >= 0), "is_active" bool NOT NULL, "title" varchar(200) NOT NULL, "described_version" varchar(60) NOT NULL, "problem" varchar(500) NOT NULL, "told" varchar(2000) NOT NULL, "checked_at" datetime NULL, "refreshed_at" datetime NULL, "due_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_source_per_name" UNIQUE ("organization_id", "name"));
INSERT INTO "new__connections_source" ("id", "kind", "name", "address", "document", "base_url", "command", "environment", "authentication", "key_name", "key_place", "token_url", "scopes", "service", "timeout_s", "is_active", "title", "described_version", "problem", "told", "checked_at", "refreshed_at", "due_at", "created_at", "organization_id") SELECT "id", "kind", "name", "address", "document", "base_url", "command", "environment", "authentication", "key_name", "key_place", "token_url", "scopes", "service", "timeout_s", "is_active", "title", "described_version", "problem", "told", "checked_at", "refreshed_at", "due_at", "created_at", "organization_id" FROM "connections_source";
DROP TABLE "connections_source";
ALTER TABLE "new__connections_source" RENAME TO "connections_source";
--
-- Create constraint source_kind_is_known on model source
--
CREATE TABLE "new__connections_source" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "kind" varchar(10) NOT NULL, "name" varchar(30) NOT NULL, "address" varchar(1000) NOT NULL, "document" text NOT NULL, "base_url" varchar(1000) NOT NULL, "command" text NOT NULL CHECK ((JSON_VALID("command") OR "command" IS NULL)), "environment" text NOT NULL CHECK ((JSON_VALID("environment") OR "environment" IS NULL)), "authentication" varchar(7) NOT NULL, "key_name" varchar(100) NOT NULL, "key_place" varchar(6) NOT NULL, "token_url" varchar(1000) NOT NULL, "scopes" varchar(500) NOT NULL, "service" varchar(80) NOT NULL, "timeout_s" smallint unsigned NOT NULL CHECK ("timeout_s" >= 0), "is_active" bool NOT NULL, "title" varchar(200) NOT NULL, "described_version" varchar(60) NOT NULL, "problem" varchar(500) NOT NULL, "told" varchar(2000) NOT NULL, "checked_at" datetime NULL, "refreshed_at" datetime NULL, "due_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_source_per_name" UNIQUE ("organization_id", "name"), CONSTRAINT "source_kind_is_known" CHECK ("kind" IN ('openapi', 'mcp_http', 'mcp_stdio')));
INSERT INTO "new__connections_source" ("id", "kind", "name", "address", "document", "base_url", "command", "environment", "authentication", "key_name", "key_place", "token_url", "scopes", "service", "timeout_s", "is_active", "title", "described_version", "problem", "told", "checked_at", "refreshed_at", "due_at", "created_at", "organization_id") SELECT "id", "kind", "name", "address", "document", "base_url", "command", "environment", "authentication", "key_name", "key_place", "token_url", "scopes", "service", "timeout_s", "is_active", "title", "described_version", "problem", "told", "checked_at", "refreshed_at", "due_at", "created_at", "organization_id" FROM "connections_source";
DROP TABLE "connections_source";
ALTER TABLE "new__connections_source" RENAME TO "connections_source";
--
-- Create constraint source_authentication_is_known on model source
--
CREATE TABLE "new__connections_source" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "kind" varchar(10) NOT NULL, "name" varchar(30) NOT NULL, "address" varchar(1000) NOT NULL, "document" text NOT NULL, "base_url" varchar(1000) NOT NULL, "command" text NOT NULL CHECK ((JSON_VALID("command") OR "command" IS NULL)), "environment" text NOT NULL CHECK ((JSON_VALID("environment") OR "environment" IS NULL)), "authentication" varchar(7) NOT NULL, "key_name" varchar(100) NOT NULL, "key_place" varchar(6) NOT NULL, "token_url" varchar(1000) NOT NULL, "scopes" varchar(500) NOT NULL, "service" varchar(80) NOT NULL, "timeout_s" smallint unsigned NOT NULL CHECK ("timeout_s" >= 0), "is_active" bool NOT NULL, "title" varchar(200) NOT NULL, "described_version" varchar(60) NOT NULL, "problem" varchar(500) NOT NULL, "told" varchar(2000) NOT NULL, "checked_at" datetime NULL, "refreshed_at" datetime NULL, "due_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_source_per_name" UNIQUE ("organization_id", "name"), CONSTRAINT "source_kind_is_known" CHECK ("kind" IN ('openapi', 'mcp_http', 'mcp_stdio')), CONSTRAINT "source_authentication_is_known" CHECK ("authentication" IN ('none', 'api_key', 'bearer', 'basic', 'oauth2')));
INSERT INTO "new__connections_source" ("id", "kind", "name", "address", "document", "base_url", "command", "environment", "authentication", "key_name", "key_place", "token_url", "scopes", "service", "timeout_s", "is_active", "title", "described_version", "problem", "told", "checked_at", "refreshed_at", "due_at", "created_at", "organization_id") SELECT "id", "kind", "name", "address", "document", "base_url", "command", "environment", "authentication", "key_name", "key_place", "token_url", "scopes", "service", "timeout_s", "is_active", "title", "described_version", "problem", "told", "checked_at", "refreshed_at", "due_at", "created_at", "organization_id" FROM "connections_source";
DROP TABLE "connections_source";
ALTER TABLE "new__connections_source" RENAME TO "connections_source";
--
-- Create constraint source_key_place_is_known on model source
--
CREATE TABLE "new__connections_source" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "kind" varchar(10) NOT NULL, "name" varchar(30) NOT NULL, "address" varchar(1000) NOT NULL, "document" text NOT NULL, "base_url" varchar(1000) NOT NULL, "command" text NOT NULL CHECK ((JSON_VALID("command") OR "command" IS NULL)), "environment" text NOT NULL CHECK ((JSON_VALID("environment") OR "environment" IS NULL)), "authentication" varchar(7) NOT NULL, "key_name" varchar(100) NOT NULL, "key_place" varchar(6) NOT NULL, "token_url" varchar(1000) NOT NULL, "scopes" varchar(500) NOT NULL, "service" varchar(80) NOT NULL, "timeout_s" smallint unsigned NOT NULL CHECK ("timeout_s" >= 0), "is_active" bool NOT NULL, "title" varchar(200) NOT NULL, "described_version" varchar(60) NOT NULL, "problem" varchar(500) NOT NULL, "told" varchar(2000) NOT NULL, "checked_at" datetime NULL, "refreshed_at" datetime NULL, "due_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_source_per_name" UNIQUE ("organization_id", "name"), CONSTRAINT "source_kind_is_known" CHECK ("kind" IN ('openapi', 'mcp_http', 'mcp_stdio')), CONSTRAINT "source_authentication_is_known" CHECK ("authentication" IN ('none', 'api_key', 'bearer', 'basic', 'oauth2')), CONSTRAINT "source_key_place_is_known" CHECK ("key_place" IN ('header', 'query', 'cookie', 'body')));
INSERT INTO "new__connections_source" ("id", "kind", "name", "address", "document", "base_url", "command", "environment", "authentication", "key_name", "key_place", "token_url", "scopes", "service", "timeout_s", "is_active", "title", "described_version", "problem", "told", "checked_at", "refreshed_at", "due_at", "created_at", "organization_id") SELECT "id", "kind", "name", "address", "document", "base_url", "command", "environment", "authentication", "key_name", "key_place", "token_url", "scopes", "service", "timeout_s", "is_active", "title", "described_version", "problem", "told", "checked_at", "refreshed_at", "due_at", "created_at", "organization_id" FROM "connections_source";
DROP TABLE "connections_source";
ALTER TABLE "new__connections_source" RENAME TO "connections_source";
--
-- Create constraint one_tool_per_key on model sourcetool
--
CREATE TABLE "new__connections_sourcetool" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "key" varchar(500) NOT NULL, "tool" varchar(120) NOT NULL, "title" varchar(200) NOT NULL, "accepted_title" varchar(200) DEFAULT '' NOT NULL, "tags" text NOT NULL CHECK ((JSON_VALID("tags") OR "tags" IS NULL)), "definition" text NOT NULL CHECK ((JSON_VALID("definition") OR "definition" IS NULL)), "hash" varchar(64) NOT NULL, "accepted_hash" varchar(64) NOT NULL, "accepted_definition" text NOT NULL CHECK ((JSON_VALID("accepted_definition") OR "accepted_definition" IS NULL)), "inferred_level" varchar(11) NOT NULL, "level" varchar(11) NOT NULL, "is_chosen" bool NOT NULL, "gone_at" datetime NULL, "source_id" bigint NOT NULL REFERENCES "connections_source" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_tool_per_key" UNIQUE ("source_id", "key"));
INSERT INTO "new__connections_sourcetool" ("id", "key", "tool", "title", "accepted_title", "tags", "definition", "hash", "accepted_hash", "accepted_definition", "inferred_level", "level", "is_chosen", "gone_at", "source_id") SELECT "id", "key", "tool", "title", "accepted_title", "tags", "definition", "hash", "accepted_hash", "accepted_definition", "inferred_level", "level", "is_chosen", "gone_at", "source_id" FROM "connections_sourcetool";
DROP TABLE "connections_sourcetool";
ALTER TABLE "new__connections_sourcetool" RENAME TO "connections_sourcetool";
--
-- Create constraint one_key_per_tool on model sourcetool
--
CREATE TABLE "new__connections_sourcetool" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "key" varchar(500) NOT NULL, "tool" varchar(120) NOT NULL, "title" varchar(200) NOT NULL, "accepted_title" varchar(200) DEFAULT '' NOT NULL, "tags" text NOT NULL CHECK ((JSON_VALID("tags") OR "tags" IS NULL)), "definition" text NOT NULL CHECK ((JSON_VALID("definition") OR "definition" IS NULL)), "hash" varchar(64) NOT NULL, "accepted_hash" varchar(64) NOT NULL, "accepted_definition" text NOT NULL CHECK ((JSON_VALID("accepted_definition") OR "accepted_definition" IS NULL)), "inferred_level" varchar(11) NOT NULL, "level" varchar(11) NOT NULL, "is_chosen" bool NOT NULL, "gone_at" datetime NULL, "source_id" bigint NOT NULL REFERENCES "connections_source" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_tool_per_key" UNIQUE ("source_id", "key"), CONSTRAINT "one_key_per_tool" UNIQUE ("source_id", "tool"));
INSERT INTO "new__connections_sourcetool" ("id", "key", "tool", "title", "accepted_title", "tags", "definition", "hash", "accepted_hash", "accepted_definition", "inferred_level", "level", "is_chosen", "gone_at", "source_id") SELECT "id", "key", "tool", "title", "accepted_title", "tags", "definition", "hash", "accepted_hash", "accepted_definition", "inferred_level", "level", "is_chosen", "gone_at", "source_id" FROM "connections_sourcetool";
DROP TABLE "connections_sourcetool";
ALTER TABLE "new__connections_sourcetool" RENAME TO "connections_sourcetool";
--
-- Create constraint source_tool_level_is_known on model sourcetool
--
CREATE TABLE "new__connections_sourcetool" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "key" varchar(500) NOT NULL, "tool" varchar(120) NOT NULL, "title" varchar(200) NOT NULL, "accepted_title" varchar(200) DEFAULT '' NOT NULL, "tags" text NOT NULL CHECK ((JSON_VALID("tags") OR "tags" IS NULL)), "definition" text NOT NULL CHECK ((JSON_VALID("definition") OR "definition" IS NULL)), "hash" varchar(64) NOT NULL, "accepted_hash" varchar(64) NOT NULL, "accepted_definition" text NOT NULL CHECK ((JSON_VALID("accepted_definition") OR "accepted_definition" IS NULL)), "inferred_level" varchar(11) NOT NULL, "level" varchar(11) NOT NULL, "is_chosen" bool NOT NULL, "gone_at" datetime NULL, "source_id" bigint NOT NULL REFERENCES "connections_source" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_tool_per_key" UNIQUE ("source_id", "key"), CONSTRAINT "one_key_per_tool" UNIQUE ("source_id", "tool"), CONSTRAINT "source_tool_level_is_known" CHECK ("level" IN ('', 'read', 'draft', 'write', 'destructive')));
INSERT INTO "new__connections_sourcetool" ("id", "key", "tool", "title", "accepted_title", "tags", "definition", "hash", "accepted_hash", "accepted_definition", "inferred_level", "level", "is_chosen", "gone_at", "source_id") SELECT "id", "key", "tool", "title", "accepted_title", "tags", "definition", "hash", "accepted_hash", "accepted_definition", "inferred_level", "level", "is_chosen", "gone_at", "source_id" FROM "connections_sourcetool";
DROP TABLE "connections_sourcetool";
ALTER TABLE "new__connections_sourcetool" RENAME TO "connections_sourcetool";
--
-- Create constraint source_tool_inferred_is_known on model sourcetool
--
CREATE TABLE "new__connections_sourcetool" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "key" varchar(500) NOT NULL, "tool" varchar(120) NOT NULL, "title" varchar(200) NOT NULL, "accepted_title" varchar(200) DEFAULT '' NOT NULL, "tags" text NOT NULL CHECK ((JSON_VALID("tags") OR "tags" IS NULL)), "definition" text NOT NULL CHECK ((JSON_VALID("definition") OR "definition" IS NULL)), "hash" varchar(64) NOT NULL, "accepted_hash" varchar(64) NOT NULL, "accepted_definition" text NOT NULL CHECK ((JSON_VALID("accepted_definition") OR "accepted_definition" IS NULL)), "inferred_level" varchar(11) NOT NULL, "level" varchar(11) NOT NULL, "is_chosen" bool NOT NULL, "gone_at" datetime NULL, "source_id" bigint NOT NULL REFERENCES "connections_source" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_tool_per_key" UNIQUE ("source_id", "key"), CONSTRAINT "one_key_per_tool" UNIQUE ("source_id", "tool"), CONSTRAINT "source_tool_level_is_known" CHECK ("level" IN ('', 'read', 'draft', 'write', 'destructive')), CONSTRAINT "source_tool_inferred_is_known" CHECK ("inferred_level" IN ('read', 'draft', 'write', 'destructive')));
INSERT INTO "new__connections_sourcetool" ("id", "key", "tool", "title", "accepted_title", "tags", "definition", "hash", "accepted_hash", "accepted_definition", "inferred_level", "level", "is_chosen", "gone_at", "source_id") SELECT "id", "key", "tool", "title", "accepted_title", "tags", "definition", "hash", "accepted_hash", "accepted_definition", "inferred_level", "level", "is_chosen", "gone_at", "source_id" FROM "connections_sourcetool";
DROP TABLE "connections_sourcetool";
ALTER TABLE "new__connections_sourcetool" RENAME TO "connections_sourcetool";
-- migration gateway.0001_initial
--
-- Create model AgentKey
--
CREATE TABLE "gateway_agentkey" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "hash" varchar(64) NOT NULL UNIQUE, "ending" varchar(4) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "expires_at" datetime NOT NULL, "last_used_at" datetime NULL, "revoked_at" datetime NULL, "revoked_by" varchar(150) NOT NULL, "keeps_open" bool NOT NULL, "employee_id" bigint NOT NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, "membership_id" bigint NULL REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model AgentSession
--
CREATE TABLE "gateway_agentsession" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "session_id" varchar(64) NOT NULL UNIQUE, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "ended_at" datetime NULL, "key_id" bigint NOT NULL REFERENCES "gateway_agentkey" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model AskedEffect
--
CREATE TABLE "gateway_askedeffect" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "action" varchar(100) NOT NULL, "key" varchar(200) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model Ask
--
CREATE TABLE "gateway_ask" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "action" varchar(100) NOT NULL, "audience" varchar(200) NOT NULL, "redeemed_at" datetime NULL, "reported_at" datetime NULL, "last_asked_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "key_id" bigint NOT NULL REFERENCES "gateway_agentkey" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL UNIQUE REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "effect_id" bigint NULL REFERENCES "gateway_askedeffect" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model RefusedAsk
--
CREATE TABLE "gateway_refusedask" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "params" text NOT NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "refused_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "ask_id" bigint NOT NULL REFERENCES "gateway_ask" ("id") DEFERRABLE INITIALLY DEFERRED, "key_id" bigint NOT NULL REFERENCES "gateway_agentkey" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model SigningKey
--
CREATE TABLE "gateway_signingkey" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "key_id" varchar(16) NOT NULL UNIQUE, "private" text NOT NULL, "public" varchar(64) NOT NULL, "is_current" bool NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "retired_at" datetime NULL);
--
-- Create model AgentRun
--
CREATE TABLE "gateway_agentrun" ("run_id" bigint NOT NULL PRIMARY KEY REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "key_id" bigint NOT NULL REFERENCES "gateway_agentkey" ("id") DEFERRABLE INITIALLY DEFERRED, "session_id" bigint NULL REFERENCES "gateway_agentsession" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create constraint one_row_per_effect on model askedeffect
--
CREATE TABLE "new__gateway_askedeffect" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "action" varchar(100) NOT NULL, "key" varchar(200) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_row_per_effect" UNIQUE ("organization_id", "action", "key"));
INSERT INTO "new__gateway_askedeffect" ("id", "action", "key", "organization_id") SELECT "id", "action", "key", "organization_id" FROM "gateway_askedeffect";
DROP TABLE "gateway_askedeffect";
ALTER TABLE "new__gateway_askedeffect" RENAME TO "gateway_askedeffect";
CREATE INDEX "gateway_agentkey_employee_id_83a7a73d" ON "gateway_agentkey" ("employee_id");
CREATE INDEX "gateway_agentkey_membership_id_54214575" ON "gateway_agentkey" ("membership_id");
CREATE INDEX "gateway_agentsession_key_id_4570b964" ON "gateway_agentsession" ("key_id");
CREATE INDEX "gateway_ask_effect_id_6e768ca1" ON "gateway_ask" ("effect_id");
CREATE INDEX "gateway_refusedask_ask_id_1d75c5a8" ON "gateway_refusedask" ("ask_id");
CREATE INDEX "gateway_refusedask_key_id_b1702fa0" ON "gateway_refusedask" ("key_id");
CREATE UNIQUE INDEX "one_key_signs_receipts" ON "gateway_signingkey" ("is_current") WHERE "is_current";
CREATE INDEX "gateway_agentrun_session_id_c4c6909a" ON "gateway_agentrun" ("session_id");
CREATE INDEX "runs_of_agent_key" ON "gateway_agentrun" ("key_id", "run_id" DESC);
--
-- Create index asks_of_agent_key on field(s) key, -id of model ask
--
CREATE INDEX "asks_of_agent_key" ON "gateway_ask" ("key_id", "id" DESC);
-- migration insight.0001_initial
--
-- Create model FiguresHead
--
CREATE TABLE "insight_figureshead" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "event_id" bigint NOT NULL, "pass_id" bigint NOT NULL, "event_bound" bigint NOT NULL, "pass_bound" bigint NOT NULL, "asked_in" bigint NOT NULL, "looked_at" datetime NOT NULL, "due_at" datetime NOT NULL);
--
-- Create model DecisionHead
--
CREATE TABLE "insight_decisionhead" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "until" datetime NOT NULL, "newest_id" bigint NOT NULL, "organization_id" bigint NOT NULL UNIQUE REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model TotalFigures
--
CREATE TABLE "insight_totalfigures" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "succeeded" bigint unsigned NOT NULL CHECK ("succeeded" >= 0), "failed" bigint unsigned NOT NULL CHECK ("failed" >= 0), "asked" bigint unsigned NOT NULL CHECK ("asked" >= 0), "approved" bigint unsigned NOT NULL CHECK ("approved" >= 0), "denied" bigint unsigned NOT NULL CHECK ("denied" >= 0), "cost_micros" bigint unsigned NOT NULL CHECK ("cost_micros" >= 0), "duration_ms" bigint unsigned NOT NULL CHECK ("duration_ms" >= 0), "slowest_ms" bigint unsigned NOT NULL CHECK ("slowest_ms" >= 0), "within_1" bigint unsigned NOT NULL CHECK ("within_1" >= 0), "within_2" bigint unsigned NOT NULL CHECK ("within_2" >= 0), "within_5" bigint unsigned NOT NULL CHECK ("within_5" >= 0), "within_10" bigint unsigned NOT NULL CHECK ("within_10" >= 0), "within_20" bigint unsigned NOT NULL CHECK ("within_20" >= 0), "within_50" bigint unsigned NOT NULL CHECK ("within_50" >= 0), "within_100" bigint unsigned NOT NULL CHECK ("within_100" >= 0), "within_200" bigint unsigned NOT NULL CHECK ("within_200" >= 0), "within_500" bigint unsigned NOT NULL CHECK ("within_500" >= 0), "within_1000" bigint unsigned NOT NULL CHECK ("within_1000" >= 0), "within_2000" bigint unsigned NOT NULL CHECK ("within_2000" >= 0), "within_5000" bigint unsigned NOT NULL CHECK ("within_5000" >= 0), "within_10000" bigint unsigned NOT NULL CHECK ("within_10000" >= 0), "within_20000" bigint unsigned NOT NULL CHECK ("within_20000" >= 0), "within_60000" bigint unsigned NOT NULL CHECK ("within_60000" >= 0), "within_300000" bigint unsigned NOT NULL CHECK ("within_300000" >= 0), "within_1800000" bigint unsigned NOT NULL CHECK ("within_1800000" >= 0), "longer" bigint unsigned NOT NULL CHECK ("longer" >= 0), "tool" varchar(120) NOT NULL, "currency" varchar(3) NOT NULL, CONSTRAINT "figures_altogether" UNIQUE ("tool", "currency"));
--
-- Create model TotalUse
--
CREATE TABLE "insight_totaluse" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "passes" bigint unsigned NOT NULL CHECK ("passes" >= 0), "input_tokens" bigint unsigned NOT NULL CHECK ("input_tokens" >= 0), "output_tokens" bigint unsigned NOT NULL CHECK ("output_tokens" >= 0), "cost_micros" bigint unsigned NOT NULL CHECK ("cost_micros" >= 0), "duration_ms" bigint unsigned NOT NULL CHECK ("duration_ms" >= 0), "runs_succeeded" bigint unsigned NOT NULL CHECK ("runs_succeeded" >= 0), "runs_failed" bigint unsigned NOT NULL CHECK ("runs_failed" >= 0), "runs_cancelled" bigint unsigned NOT NULL CHECK ("runs_cancelled" >= 0), "currency" varchar(3) NOT NULL, CONSTRAINT "use_altogether" UNIQUE ("currency"));
--
-- Create model DecisionFigures
--
CREATE TABLE "insight_decisionfigures" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "day" date NOT NULL, "subject" varchar(40) NOT NULL, "data" text NOT NULL CHECK ((JSON_VALID("data") OR "data" IS NULL)), "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "decision_figures_of_a_day" UNIQUE ("organization_id", "subject", "day"));
--
-- Create model EmployeeFigures
--
CREATE TABLE "insight_employeefigures" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "succeeded" bigint unsigned NOT NULL CHECK ("succeeded" >= 0), "failed" bigint unsigned NOT NULL CHECK ("failed" >= 0), "asked" bigint unsigned NOT NULL CHECK ("asked" >= 0), "approved" bigint unsigned NOT NULL CHECK ("approved" >= 0), "denied" bigint unsigned NOT NULL CHECK ("denied" >= 0), "cost_micros" bigint unsigned NOT NULL CHECK ("cost_micros" >= 0), "duration_ms" bigint unsigned NOT NULL CHECK ("duration_ms" >= 0), "slowest_ms" bigint unsigned NOT NULL CHECK ("slowest_ms" >= 0), "within_1" bigint unsigned NOT NULL CHECK ("within_1" >= 0), "within_2" bigint unsigned NOT NULL CHECK ("within_2" >= 0), "within_5" bigint unsigned NOT NULL CHECK ("within_5" >= 0), "within_10" bigint unsigned NOT NULL CHECK ("within_10" >= 0), "within_20" bigint unsigned NOT NULL CHECK ("within_20" >= 0), "within_50" bigint unsigned NOT NULL CHECK ("within_50" >= 0), "within_100" bigint unsigned NOT NULL CHECK ("within_100" >= 0), "within_200" bigint unsigned NOT NULL CHECK ("within_200" >= 0), "within_500" bigint unsigned NOT NULL CHECK ("within_500" >= 0), "within_1000" bigint unsigned NOT NULL CHECK ("within_1000" >= 0), "within_2000" bigint unsigned NOT NULL CHECK ("within_2000" >= 0), "within_5000" bigint unsigned NOT NULL CHECK ("within_5000" >= 0), "within_10000" bigint unsigned NOT NULL CHECK ("within_10000" >= 0), "within_20000" bigint unsigned NOT NULL CHECK ("within_20000" >= 0), "within_60000" bigint unsigned NOT NULL CHECK ("within_60000" >= 0), "within_300000" bigint unsigned NOT NULL CHECK ("within_300000" >= 0), "within_1800000" bigint unsigned NOT NULL CHECK ("within_1800000" >= 0), "longer" bigint unsigned NOT NULL CHECK ("longer" >= 0), "day" date NOT NULL, "tool" varchar(120) NOT NULL, "last_error_code" varchar(40) NOT NULL, "last_error" varchar(200) NOT NULL, "last_error_at" datetime NULL, "employee_id" bigint NOT NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "employee_figures_of_a_day" UNIQUE ("employee_id", "day", "tool"));
--
-- Create model EmployeeUse
--
CREATE TABLE "insight_employeeuse" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "passes" bigint unsigned NOT NULL CHECK ("passes" >= 0), "input_tokens" bigint unsigned NOT NULL CHECK ("input_tokens" >= 0), "output_tokens" bigint unsigned NOT NULL CHECK ("output_tokens" >= 0), "cost_micros" bigint unsigned NOT NULL CHECK ("cost_micros" >= 0), "duration_ms" bigint unsigned NOT NULL CHECK ("duration_ms" >= 0), "runs_succeeded" bigint unsigned NOT NULL CHECK ("runs_succeeded" >= 0), "runs_failed" bigint unsigned NOT NULL CHECK ("runs_failed" >= 0), "runs_cancelled" bigint unsigned NOT NULL CHECK ("runs_cancelled" >= 0), "day" date NOT NULL, "employee_id" bigint NOT NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "employee_use_of_a_day" UNIQUE ("employee_id", "day"));
--
-- Create model ToolFigures
--
CREATE TABLE "insight_toolfigures" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "succeeded" bigint unsigned NOT NULL CHECK ("succeeded" >= 0), "failed" bigint unsigned NOT NULL CHECK ("failed" >= 0), "asked" bigint unsigned NOT NULL CHECK ("asked" >= 0), "approved" bigint unsigned NOT NULL CHECK ("approved" >= 0), "denied" bigint unsigned NOT NULL CHECK ("denied" >= 0), "cost_micros" bigint unsigned NOT NULL CHECK ("cost_micros" >= 0), "duration_ms" bigint unsigned NOT NULL CHECK ("duration_ms" >= 0), "slowest_ms" bigint unsigned NOT NULL CHECK ("slowest_ms" >= 0), "within_1" bigint unsigned NOT NULL CHECK ("within_1" >= 0), "within_2" bigint unsigned NOT NULL CHECK ("within_2" >= 0), "within_5" bigint unsigned NOT NULL CHECK ("within_5" >= 0), "within_10" bigint unsigned NOT NULL CHECK ("within_10" >= 0), "within_20" bigint unsigned NOT NULL CHECK ("within_20" >= 0), "within_50" bigint unsigned NOT NULL CHECK ("within_50" >= 0), "within_100" bigint unsigned NOT NULL CHECK ("within_100" >= 0), "within_200" bigint unsigned NOT NULL CHECK ("within_200" >= 0), "within_500" bigint unsigned NOT NULL CHECK ("within_500" >= 0), "within_1000" bigint unsigned NOT NULL CHECK ("within_1000" >= 0), "within_2000" bigint unsigned NOT NULL CHECK ("within_2000" >= 0), "within_5000" bigint unsigned NOT NULL CHECK ("within_5000" >= 0), "within_10000" bigint unsigned NOT NULL CHECK ("within_10000" >= 0), "within_20000" bigint unsigned NOT NULL CHECK ("within_20000" >= 0), "within_60000" bigint unsigned NOT NULL CHECK ("within_60000" >= 0), "within_300000" bigint unsigned NOT NULL CHECK ("within_300000" >= 0), "within_1800000" bigint unsigned NOT NULL CHECK ("within_1800000" >= 0), "longer" bigint unsigned NOT NULL CHECK ("longer" >= 0), "day" date NOT NULL, "tool" varchar(120) NOT NULL, "last_error_code" varchar(40) NOT NULL, "last_error" varchar(200) NOT NULL, "last_error_at" datetime NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "tool_figures_of_a_day" UNIQUE ("organization_id", "day", "tool"));
-- migration notices.0001_initial
--
-- Create model Channel
--
CREATE TABLE "notices_channel" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "failing_since" datetime NULL, "problem" varchar(300) NOT NULL, "kind" varchar(10) NOT NULL, "address" text NOT NULL, "label" varchar(200) NOT NULL, "fingerprint" varchar(64) NOT NULL, "host" varchar(200) DEFAULT '' NOT NULL, "is_shared" bool NOT NULL, "code" text NOT NULL, "wrong_codes" smallint unsigned NOT NULL CHECK ("wrong_codes" >= 0), "gone_answers" smallint unsigned NOT NULL CHECK ("gone_answers" >= 0), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "confirmed_at" datetime NULL, "membership_id" bigint NOT NULL REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model FollowedRun
--
CREATE TABLE "notices_followedrun" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "membership_id" bigint NOT NULL REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model Notice
--
CREATE TABLE "notices_notice" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "key" varchar(80) NOT NULL, "kind" varchar(16) NOT NULL, "detail" varchar(200) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "spread_at" datetime NULL, "approval_id" bigint NULL REFERENCES "approvals_approval" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model Delivery
--
CREATE TABLE "notices_delivery" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "due_at" datetime NOT NULL, "tries" smallint unsigned NOT NULL CHECK ("tries" >= 0), "problem" varchar(300) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "ended_at" datetime NULL, "status" varchar(8) NOT NULL, "is_on_screen" bool NOT NULL, "channel_id" bigint NOT NULL REFERENCES "notices_channel" ("id") DEFERRABLE INITIALLY DEFERRED, "notice_id" bigint NOT NULL REFERENCES "notices_notice" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model NoticeChoices
--
CREATE TABLE "notices_noticechoices" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "paces" text NOT NULL CHECK ((JSON_VALID("paces") OR "paces" IS NULL)), "quiet_from" time NULL, "quiet_until" time NULL, "digest_at" time NOT NULL, "time_zone" varchar(60) NOT NULL, "membership_id" bigint NOT NULL UNIQUE REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model PushKey
--
CREATE TABLE "notices_pushkey" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "private_key" text NOT NULL, CONSTRAINT "there_is_one_push_key" CHECK ("id" = 1));
--
-- Create constraint one_channel_per_address on model channel
--
CREATE TABLE "new__notices_channel" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "failing_since" datetime NULL, "problem" varchar(300) NOT NULL, "kind" varchar(10) NOT NULL, "address" text NOT NULL, "label" varchar(200) NOT NULL, "fingerprint" varchar(64) NOT NULL, "host" varchar(200) DEFAULT '' NOT NULL, "is_shared" bool NOT NULL, "code" text NOT NULL, "wrong_codes" smallint unsigned NOT NULL CHECK ("wrong_codes" >= 0), "gone_answers" smallint unsigned NOT NULL CHECK ("gone_answers" >= 0), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "confirmed_at" datetime NULL, "membership_id" bigint NOT NULL REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_channel_per_address" UNIQUE ("membership_id", "fingerprint"));
INSERT INTO "new__notices_channel" ("id", "failing_since", "problem", "kind", "address", "label", "fingerprint", "host", "is_shared", "code", "wrong_codes", "gone_answers", "created_at", "confirmed_at", "membership_id") SELECT "id", "failing_since", "problem", "kind", "address", "label", "fingerprint", "host", "is_shared", "code", "wrong_codes", "gone_answers", "created_at", "confirmed_at", "membership_id" FROM "notices_channel";
DROP TABLE "notices_channel";
ALTER TABLE "new__notices_channel" RENAME TO "notices_channel";
CREATE INDEX "notices_followedrun_membership_id_d3df100a" ON "notices_followedrun" ("membership_id");
CREATE INDEX "notices_followedrun_run_id_9606779c" ON "notices_followedrun" ("run_id");
CREATE INDEX "notices_notice_run_id_84510ece" ON "notices_notice" ("run_id");
CREATE INDEX "notices_notice_user_id_62c74e71" ON "notices_notice" ("user_id");
CREATE INDEX "notices_delivery_notice_id_2d5dfa0c" ON "notices_delivery" ("notice_id");
CREATE INDEX "notices_channel_membership_id_a25452b3" ON "notices_channel" ("membership_id");
--
-- Create constraint channel_kind_is_known on model channel
--
CREATE TABLE "new__notices_channel" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "failing_since" datetime NULL, "problem" varchar(300) NOT NULL, "kind" varchar(10) NOT NULL, "address" text NOT NULL, "label" varchar(200) NOT NULL, "fingerprint" varchar(64) NOT NULL, "host" varchar(200) DEFAULT '' NOT NULL, "is_shared" bool NOT NULL, "code" text NOT NULL, "wrong_codes" smallint unsigned NOT NULL CHECK ("wrong_codes" >= 0), "gone_answers" smallint unsigned NOT NULL CHECK ("gone_answers" >= 0), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "confirmed_at" datetime NULL, "membership_id" bigint NOT NULL REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_channel_per_address" UNIQUE ("membership_id", "fingerprint"), CONSTRAINT "channel_kind_is_known" CHECK ("kind" IN ('email', 'push', 'chat')));
INSERT INTO "new__notices_channel" ("id", "failing_since", "problem", "kind", "address", "label", "fingerprint", "host", "is_shared", "code", "wrong_codes", "gone_answers", "created_at", "confirmed_at", "membership_id") SELECT "id", "failing_since", "problem", "kind", "address", "label", "fingerprint", "host", "is_shared", "code", "wrong_codes", "gone_answers", "created_at", "confirmed_at", "membership_id" FROM "notices_channel";
DROP TABLE "notices_channel";
ALTER TABLE "new__notices_channel" RENAME TO "notices_channel";
CREATE INDEX "notices_channel_membership_id_a25452b3" ON "notices_channel" ("membership_id");
--
-- Create constraint a_run_is_followed_once on model followedrun
--
CREATE TABLE "new__notices_followedrun" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "membership_id" bigint NOT NULL REFERENCES "accounts_membership" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "a_run_is_followed_once" UNIQUE ("membership_id", "run_id"));
INSERT INTO "new__notices_followedrun" ("id", "membership_id", "run_id") SELECT "id", "membership_id", "run_id" FROM "notices_followedrun";
DROP TABLE "notices_followedrun";
ALTER TABLE "new__notices_followedrun" RENAME TO "notices_followedrun";
CREATE INDEX "notices_followedrun_membership_id_d3df100a" ON "notices_followedrun" ("membership_id");
CREATE INDEX "notices_followedrun_run_id_9606779c" ON "notices_followedrun" ("run_id");
--
-- Create index notices_to_spread on field(s) id of model notice
--
CREATE INDEX "notices_to_spread" ON "notices_notice" ("id") WHERE "spread_at" IS NULL;
--
-- Create index notices_of_approval on field(s) approval, kind of model notice
--
CREATE INDEX "notices_of_approval" ON "notices_notice" ("approval_id", "kind");
--
-- Create constraint one_notice_per_fact on model notice
--
CREATE TABLE "new__notices_notice" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "key" varchar(80) NOT NULL, "kind" varchar(16) NOT NULL, "detail" varchar(200) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "spread_at" datetime NULL, "approval_id" bigint NULL REFERENCES "approvals_approval" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_notice_per_fact" UNIQUE ("organization_id", "key"));
INSERT INTO "new__notices_notice" ("id", "key", "kind", "detail", "created_at", "spread_at", "approval_id", "organization_id", "run_id", "user_id") SELECT "id", "key", "kind", "detail", "created_at", "spread_at", "approval_id", "organization_id", "run_id", "user_id" FROM "notices_notice";
DROP TABLE "notices_notice";
ALTER TABLE "new__notices_notice" RENAME TO "notices_notice";
CREATE INDEX "notices_notice_run_id_84510ece" ON "notices_notice" ("run_id");
CREATE INDEX "notices_notice_user_id_62c74e71" ON "notices_notice" ("user_id");
CREATE INDEX "notices_to_spread" ON "notices_notice" ("id") WHERE "spread_at" IS NULL;
CREATE INDEX "notices_of_approval" ON "notices_notice" ("approval_id", "kind");
--
-- Create constraint notice_kind_is_known on model notice
--
CREATE TABLE "new__notices_notice" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "key" varchar(80) NOT NULL, "kind" varchar(16) NOT NULL, "detail" varchar(200) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "spread_at" datetime NULL, "approval_id" bigint NULL REFERENCES "approvals_approval" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_notice_per_fact" UNIQUE ("organization_id", "key"), CONSTRAINT "notice_kind_is_known" CHECK ("kind" IN ('card', 'question', 'unknown', 'card_expiring', 'card_expired', 'run_failed', 'run_ended', 'escalated', 'stuck', 'break_glass', 'stopped', 'budget', 'quarantine', 'schedule', 'webhook_off', 'channel_lost', 'code')));
INSERT INTO "new__notices_notice" ("id", "key", "kind", "detail", "created_at", "spread_at", "approval_id", "organization_id", "run_id", "user_id") SELECT "id", "key", "kind", "detail", "created_at", "spread_at", "approval_id", "organization_id", "run_id", "user_id" FROM "notices_notice";
DROP TABLE "notices_notice";
ALTER TABLE "new__notices_notice" RENAME TO "notices_notice";
CREATE INDEX "notices_notice_run_id_84510ece" ON "notices_notice" ("run_id");
CREATE INDEX "notices_notice_user_id_62c74e71" ON "notices_notice" ("user_id");
CREATE INDEX "notices_to_spread" ON "notices_notice" ("id") WHERE "spread_at" IS NULL;
CREATE INDEX "notices_of_approval" ON "notices_notice" ("approval_id", "kind");
--
-- Create index deliveries_due on field(s) due_at, id of model delivery
--
CREATE INDEX "deliveries_due" ON "notices_delivery" ("due_at", "id") WHERE "status" = 'waiting';
--
-- Create index deliveries_failed on field(s) id of model delivery
--
CREATE INDEX "deliveries_failed" ON "notices_delivery" ("id") WHERE "status" = 'failed';
--
-- Create index deliveries_on_screens on field(s) id of model delivery
--
CREATE INDEX "deliveries_on_screens" ON "notices_delivery" ("id") WHERE "is_on_screen";
--
-- Create index deliveries_of_channel on field(s) channel, -id of model delivery
--
CREATE INDEX "deliveries_of_channel" ON "notices_delivery" ("channel_id", "id" DESC);
--
-- Create constraint one_delivery_per_notice_and_channel on model delivery
--
CREATE TABLE "new__notices_delivery" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "due_at" datetime NOT NULL, "tries" smallint unsigned NOT NULL CHECK ("tries" >= 0), "problem" varchar(300) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "ended_at" datetime NULL, "status" varchar(8) NOT NULL, "is_on_screen" bool NOT NULL, "channel_id" bigint NOT NULL REFERENCES "notices_channel" ("id") DEFERRABLE INITIALLY DEFERRED, "notice_id" bigint NOT NULL REFERENCES "notices_notice" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_delivery_per_notice_and_channel" UNIQUE ("notice_id", "channel_id"));
INSERT INTO "new__notices_delivery" ("id", "due_at", "tries", "problem", "created_at", "ended_at", "status", "is_on_screen", "channel_id", "notice_id") SELECT "id", "due_at", "tries", "problem", "created_at", "ended_at", "status", "is_on_screen", "channel_id", "notice_id" FROM "notices_delivery";
DROP TABLE "notices_delivery";
ALTER TABLE "new__notices_delivery" RENAME TO "notices_delivery";
CREATE INDEX "notices_delivery_notice_id_2d5dfa0c" ON "notices_delivery" ("notice_id");
CREATE INDEX "deliveries_due" ON "notices_delivery" ("due_at", "id") WHERE "status" = 'waiting';
CREATE INDEX "deliveries_failed" ON "notices_delivery" ("id") WHERE "status" = 'failed';
CREATE INDEX "deliveries_on_screens" ON "notices_delivery" ("id") WHERE "is_on_screen";
CREATE INDEX "deliveries_of_channel" ON "notices_delivery" ("channel_id", "id" DESC);
--
-- Create constraint delivery_status_is_known on model delivery
--
CREATE TABLE "new__notices_delivery" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "due_at" datetime NOT NULL, "tries" smallint unsigned NOT NULL CHECK ("tries" >= 0), "problem" varchar(300) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "ended_at" datetime NULL, "status" varchar(8) NOT NULL, "is_on_screen" bool NOT NULL, "channel_id" bigint NOT NULL REFERENCES "notices_channel" ("id") DEFERRABLE INITIALLY DEFERRED, "notice_id" bigint NOT NULL REFERENCES "notices_notice" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_delivery_per_notice_and_channel" UNIQUE ("notice_id", "channel_id"), CONSTRAINT "delivery_status_is_known" CHECK ("status" IN ('waiting', 'sent', 'shown', 'dropped', 'failed')));
INSERT INTO "new__notices_delivery" ("id", "due_at", "tries", "problem", "created_at", "ended_at", "status", "is_on_screen", "channel_id", "notice_id") SELECT "id", "due_at", "tries", "problem", "created_at", "ended_at", "status", "is_on_screen", "channel_id", "notice_id" FROM "notices_delivery";
DROP TABLE "notices_delivery";
ALTER TABLE "new__notices_delivery" RENAME TO "notices_delivery";
CREATE INDEX "notices_delivery_notice_id_2d5dfa0c" ON "notices_delivery" ("notice_id");
CREATE INDEX "deliveries_due" ON "notices_delivery" ("due_at", "id") WHERE "status" = 'waiting';
CREATE INDEX "deliveries_failed" ON "notices_delivery" ("id") WHERE "status" = 'failed';
CREATE INDEX "deliveries_on_screens" ON "notices_delivery" ("id") WHERE "is_on_screen";
CREATE INDEX "deliveries_of_channel" ON "notices_delivery" ("channel_id", "id" DESC);
--
-- Create constraint ended_delivery_has_a_time on model delivery
--
CREATE TABLE "new__notices_delivery" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "due_at" datetime NOT NULL, "tries" smallint unsigned NOT NULL CHECK ("tries" >= 0), "problem" varchar(300) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "ended_at" datetime NULL, "status" varchar(8) NOT NULL, "is_on_screen" bool NOT NULL, "channel_id" bigint NOT NULL REFERENCES "notices_channel" ("id") DEFERRABLE INITIALLY DEFERRED, "notice_id" bigint NOT NULL REFERENCES "notices_notice" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_delivery_per_notice_and_channel" UNIQUE ("notice_id", "channel_id"), CONSTRAINT "delivery_status_is_known" CHECK ("status" IN ('waiting', 'sent', 'shown', 'dropped', 'failed')), CONSTRAINT "ended_delivery_has_a_time" CHECK ((("ended_at" IS NULL AND "status" = 'waiting') OR (NOT ("status" = 'waiting') AND "ended_at" IS NOT NULL))));
INSERT INTO "new__notices_delivery" ("id", "due_at", "tries", "problem", "created_at", "ended_at", "status", "is_on_screen", "channel_id", "notice_id") SELECT "id", "due_at", "tries", "problem", "created_at", "ended_at", "status", "is_on_screen", "channel_id", "notice_id" FROM "notices_delivery";
DROP TABLE "notices_delivery";
ALTER TABLE "new__notices_delivery" RENAME TO "notices_delivery";
CREATE INDEX "notices_delivery_notice_id_2d5dfa0c" ON "notices_delivery" ("notice_id");
CREATE INDEX "deliveries_due" ON "notices_delivery" ("due_at", "id") WHERE "status" = 'waiting';
CREATE INDEX "deliveries_failed" ON "notices_delivery" ("id") WHERE "status" = 'failed';
CREATE INDEX "deliveries_on_screens" ON "notices_delivery" ("id") WHERE "is_on_screen";
CREATE INDEX "deliveries_of_channel" ON "notices_delivery" ("channel_id", "id" DESC);
-- migration platform.0001_first_release
--
-- Create model WriteProbe
--
CREATE TABLE "platform_writeprobe" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "filler" BLOB NOT NULL);
--
-- Create model Installation
--
CREATE TABLE "platform_installation" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "folder_mark" varchar(64) NOT NULL, "canary" text NOT NULL, CONSTRAINT "there_is_one_installation" CHECK ("id" = 1));
--
-- Create model OldestSchema
--
CREATE TABLE "platform_oldestschema" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "oldest" integer unsigned NOT NULL CHECK ("oldest" >= 0), "gadget" varchar(40) NOT NULL, CONSTRAINT "there_is_one_oldest_schema" CHECK ("id" = 1));
--
-- Raw Python operation
--
-- THIS OPERATION CANNOT BE WRITTEN AS SQL
-- migration policy.0001_initial
--
-- Create model PolicyDraft
--
CREATE TABLE "policy_policydraft" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "changes" text NOT NULL CHECK ((JSON_VALID("changes") OR "changes" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "shadow_from" datetime NULL, "shadow_until" datetime NULL, "last_call_id" bigint NOT NULL, "counts" text NOT NULL CHECK ((JSON_VALID("counts") OR "counts" IS NULL)), "last_decided_at" datetime NULL, "last_card_id" bigint NOT NULL, "card_counts" text NOT NULL CHECK ((JSON_VALID("card_counts") OR "card_counts" IS NULL)), "created_by_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model PolicySnapshot
--
CREATE TABLE "policy_policysnapshot" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "hash" varchar(64) NOT NULL, "rules" text NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model ShadowCard
--
CREATE TABLE "policy_shadowcard" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "outcome" varchar(10) NOT NULL, "needs" text NOT NULL, "is_stuck" bool NOT NULL, "card_id" bigint NOT NULL REFERENCES "approvals_approval" ("id") DEFERRABLE INITIALLY DEFERRED, "draft_id" bigint NOT NULL REFERENCES "policy_policydraft" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model ShadowVerdict
--
CREATE TABLE "policy_shadowverdict" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "before" varchar(10) NOT NULL, "after" varchar(10) NOT NULL, "reason" text NOT NULL, "call_id" bigint NOT NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "draft_id" bigint NOT NULL REFERENCES "policy_policydraft" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create index drafts_of_organization on field(s) organization, -id of model policydraft
--
CREATE INDEX "drafts_of_organization" ON "policy_policydraft" ("organization_id", "id" DESC);
--
-- Create index drafts_in_shadow on field(s) shadow_until of model policydraft
--
CREATE INDEX "drafts_in_shadow" ON "policy_policydraft" ("shadow_until") WHERE "shadow_until" IS NOT NULL;
--
-- Create constraint shadow_has_a_beginning_and_an_end on model policydraft
--
CREATE TABLE "new__policy_policydraft" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "changes" text NOT NULL CHECK ((JSON_VALID("changes") OR "changes" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "shadow_from" datetime NULL, "shadow_until" datetime NULL, "last_call_id" bigint NOT NULL, "counts" text NOT NULL CHECK ((JSON_VALID("counts") OR "counts" IS NULL)), "last_decided_at" datetime NULL, "last_card_id" bigint NOT NULL, "card_counts" text NOT NULL CHECK ((JSON_VALID("card_counts") OR "card_counts" IS NULL)), "created_by_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "shadow_has_a_beginning_and_an_end" CHECK ((("shadow_from" IS NULL AND "shadow_until" IS NULL) OR ("shadow_from" IS NOT NULL AND "shadow_until" > ("shadow_from")))));
INSERT INTO "new__policy_policydraft" ("id", "name", "changes", "created_at", "shadow_from", "shadow_until", "last_call_id", "counts", "last_decided_at", "last_card_id", "card_counts", "created_by_id", "organization_id") SELECT "id", "name", "changes", "created_at", "shadow_from", "shadow_until", "last_call_id", "counts", "last_decided_at", "last_card_id", "card_counts", "created_by_id", "organization_id" FROM "policy_policydraft";
DROP TABLE "policy_policydraft";
ALTER TABLE "new__policy_policydraft" RENAME TO "policy_policydraft";
CREATE INDEX "policy_shadowcard_card_id_17a8070f" ON "policy_shadowcard" ("card_id");
CREATE INDEX "policy_shadowverdict_call_id_308c0c1b" ON "policy_shadowverdict" ("call_id");
CREATE INDEX "policy_policydraft_created_by_id_eb982769" ON "policy_policydraft" ("created_by_id");
CREATE INDEX "drafts_of_organization" ON "policy_policydraft" ("organization_id", "id" DESC);
CREATE INDEX "drafts_in_shadow" ON "policy_policydraft" ("shadow_until") WHERE "shadow_until" IS NOT NULL;
--
-- Create constraint one_snapshot_per_hash on model policysnapshot
--
CREATE TABLE "new__policy_policysnapshot" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "hash" varchar(64) NOT NULL, "rules" text NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_snapshot_per_hash" UNIQUE ("organization_id", "hash"));
INSERT INTO "new__policy_policysnapshot" ("id", "hash", "rules", "created_at", "organization_id") SELECT "id", "hash", "rules", "created_at", "organization_id" FROM "policy_policysnapshot";
DROP TABLE "policy_policysnapshot";
ALTER TABLE "new__policy_policysnapshot" RENAME TO "policy_policysnapshot";
--
-- Create constraint one_shadow_outcome_per_card on model shadowcard
--
CREATE TABLE "new__policy_shadowcard" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "outcome" varchar(10) NOT NULL, "needs" text NOT NULL, "is_stuck" bool NOT NULL, "card_id" bigint NOT NULL REFERENCES "approvals_approval" ("id") DEFERRABLE INITIALLY DEFERRED, "draft_id" bigint NOT NULL REFERENCES "policy_policydraft" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_shadow_outcome_per_card" UNIQUE ("draft_id", "card_id"));
INSERT INTO "new__policy_shadowcard" ("id", "outcome", "needs", "is_stuck", "card_id", "draft_id") SELECT "id", "outcome", "needs", "is_stuck", "card_id", "draft_id" FROM "policy_shadowcard";
DROP TABLE "policy_shadowcard";
ALTER TABLE "new__policy_shadowcard" RENAME TO "policy_shadowcard";
CREATE INDEX "policy_shadowcard_card_id_17a8070f" ON "policy_shadowcard" ("card_id");
--
-- Create constraint one_shadow_verdict_per_call on model shadowverdict
--
CREATE TABLE "new__policy_shadowverdict" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "before" varchar(10) NOT NULL, "after" varchar(10) NOT NULL, "reason" text NOT NULL, "call_id" bigint NOT NULL REFERENCES "runs_toolcall" ("id") DEFERRABLE INITIALLY DEFERRED, "draft_id" bigint NOT NULL REFERENCES "policy_policydraft" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_shadow_verdict_per_call" UNIQUE ("draft_id", "call_id"));
INSERT INTO "new__policy_shadowverdict" ("id", "before", "after", "reason", "call_id", "draft_id") SELECT "id", "before", "after", "reason", "call_id", "draft_id" FROM "policy_shadowverdict";
DROP TABLE "policy_shadowverdict";
ALTER TABLE "new__policy_shadowverdict" RENAME TO "policy_shadowverdict";
CREATE INDEX "policy_shadowverdict_call_id_308c0c1b" ON "policy_shadowverdict" ("call_id");
-- migration readers.0001_initial
--
-- Create model ReaderCursor
--
CREATE TABLE "readers_readercursor" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "reader" varchar(40) NOT NULL UNIQUE, "position" bigint NOT NULL, "holes" text NOT NULL CHECK ((JSON_VALID("holes") OR "holes" IS NULL)));
-- migration records.0001_initial
--
-- Create model Record
--
CREATE TABLE "records_record" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(200) NOT NULL, "look" varchar(100) NOT NULL, "region" varchar(50) NOT NULL, "category" varchar(80) NOT NULL, "status" varchar(10) NOT NULL, "score" smallint unsigned NULL CHECK ("score" >= 0), "email" varchar(254) NOT NULL, "domain" varchar(253) NOT NULL, "phone" varchar(40) NOT NULL, "notes" text NOT NULL, "attributes" text NOT NULL CHECK ((JSON_VALID("attributes") OR "attributes" IS NULL)), "qualification" varchar(12) NOT NULL, "qualification_reason" varchar(500) NOT NULL, "version" integer unsigned NOT NULL CHECK ("version" >= 0), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "updated_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "archived_at" datetime NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model Draft
--
CREATE TABLE "records_draft" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "kind" varchar(10) NOT NULL, "title" varchar(200) NOT NULL, "body" text NOT NULL, "employee" varchar(200) NOT NULL, "run_id" varchar(64) NOT NULL, "idempotency_key" varchar(200) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE "records_draft_records" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "draft_id" bigint NOT NULL REFERENCES "records_draft" ("id") DEFERRABLE INITIALLY DEFERRED, "record_id" bigint NOT NULL REFERENCES "records_record" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model RecordChange
--
CREATE TABLE "records_recordchange" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "version" integer unsigned NOT NULL CHECK ("version" >= 0), "call_id" varchar(64) NOT NULL, "run_id" varchar(64) NOT NULL, "actor" varchar(200) NOT NULL, "before" text NOT NULL CHECK ((JSON_VALID("before") OR "before" IS NULL)), "after" text NOT NULL CHECK ((JSON_VALID("after") OR "after" IS NULL)), "at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "record_id" bigint NOT NULL REFERENCES "records_record" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model RecordList
--
CREATE TABLE "records_recordlist" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(100) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model ListEntry
--
CREATE TABLE "records_listentry" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "added_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "record_id" bigint NOT NULL REFERENCES "records_record" ("id") DEFERRABLE INITIALLY DEFERRED, "list_id" bigint NOT NULL REFERENCES "records_recordlist" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create index record_name on field(s) organization, name, id of model record
--
CREATE INDEX "record_name" ON "records_record" ("organization_id", "name", "id");
--
-- Create index record_look on field(s) organization, look of model record
--
CREATE INDEX "record_look" ON "records_record" ("organization_id", "look");
--
-- Create index record_email on F(organization), Lower(F(email)) on model record
--
CREATE INDEX "record_email" ON "records_record" ("organization_id", (LOWER("email")));
--
-- Create index record_domain on F(organization), Lower(F(domain)) on model record
--
CREATE INDEX "record_domain" ON "records_record" ("organization_id", (LOWER("domain")));
--
-- Create index record_score on F(organization), Func(F(score), template=COALESCE(%(expressions)s, -1)), F(id) on model record
--
CREATE INDEX "record_score" ON "records_record" ("organization_id", (COALESCE("score", -1)), "id");
--
-- Create index record_changed on field(s) organization, updated_at, id of model record
--
CREATE INDEX "record_changed" ON "records_record" ("organization_id", "updated_at", "id");
--
-- Create index record_status on field(s) organization, status of model record
--
CREATE INDEX "record_status" ON "records_record" ("organization_id", "status");
--
-- Create index record_region on field(s) organization, region of model record
--
CREATE INDEX "record_region" ON "records_record" ("organization_id", "region");
--
-- Create index record_category on field(s) organization, category of model record
--
CREATE INDEX "record_category" ON "records_record" ("organization_id", "category");
--
-- Create constraint record_status_known on model record
--
CREATE TABLE "new__records_record" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(200) NOT NULL, "look" varchar(100) NOT NULL, "region" varchar(50) NOT NULL, "category" varchar(80) NOT NULL, "status" varchar(10) NOT NULL, "score" smallint unsigned NULL CHECK ("score" >= 0), "email" varchar(254) NOT NULL, "domain" varchar(253) NOT NULL, "phone" varchar(40) NOT NULL, "notes" text NOT NULL, "attributes" text NOT NULL CHECK ((JSON_VALID("attributes") OR "attributes" IS NULL)), "qualification" varchar(12) NOT NULL, "qualification_reason" varchar(500) NOT NULL, "version" integer unsigned NOT NULL CHECK ("version" >= 0), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "updated_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "archived_at" datetime NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "record_status_known" CHECK ("status" IN ('active', 'inactive', 'pending')));
INSERT INTO "new__records_record" ("id", "name", "look", "region", "category", "status", "score", "email", "domain", "phone", "notes", "attributes", "qualification", "qualification_reason", "version", "created_at", "updated_at", "archived_at", "organization_id") SELECT "id", "name", "look", "region", "category", "status", "score", "email", "domain", "phone", "notes", "attributes", "qualification", "qualification_reason", "version", "created_at", "updated_at", "archived_at", "organization_id" FROM "records_record";
DROP TABLE "records_record";
ALTER TABLE "new__records_record" RENAME TO "records_record";
CREATE INDEX "records_draft_organization_id_f23005db" ON "records_draft" ("organization_id");
CREATE UNIQUE INDEX "records_draft_records_draft_id_record_id_7c722419_uniq" ON "records_draft_records" ("draft_id", "record_id");
CREATE INDEX "records_draft_records_draft_id_124af82c" ON "records_draft_records" ("draft_id");
CREATE INDEX "records_draft_records_record_id_7d37cf18" ON "records_draft_records" ("record_id");
CREATE INDEX "records_recordchange_record_id_a77bb8c4" ON "records_recordchange" ("record_id");
CREATE INDEX "records_recordlist_organization_id_1f8b94f5" ON "records_recordlist" ("organization_id");
CREATE INDEX "records_listentry_record_id_6467de8b" ON "records_listentry" ("record_id");
CREATE INDEX "records_listentry_list_id_194ff28d" ON "records_listentry" ("list_id");
CREATE INDEX "records_record_organization_id_120df185" ON "records_record" ("organization_id");
CREATE INDEX "record_name" ON "records_record" ("organization_id", "name", "id");
CREATE INDEX "record_look" ON "records_record" ("organization_id", "look");
CREATE INDEX "record_email" ON "records_record" ("organization_id", (LOWER("email")));
CREATE INDEX "record_domain" ON "records_record" ("organization_id", (LOWER("domain")));
CREATE INDEX "record_score" ON "records_record" ("organization_id", (COALESCE("score", -1)), "id");
CREATE INDEX "record_changed" ON "records_record" ("organization_id", "updated_at", "id");
CREATE INDEX "record_status" ON "records_record" ("organization_id", "status");
CREATE INDEX "record_region" ON "records_record" ("organization_id", "region");
CREATE INDEX "record_category" ON "records_record" ("organization_id", "category");
--
-- Create constraint record_score_0_to_100 on model record
--
CREATE TABLE "new__records_record" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(200) NOT NULL, "look" varchar(100) NOT NULL, "region" varchar(50) NOT NULL, "category" varchar(80) NOT NULL, "status" varchar(10) NOT NULL, "score" smallint unsigned NULL CHECK ("score" >= 0), "email" varchar(254) NOT NULL, "domain" varchar(253) NOT NULL, "phone" varchar(40) NOT NULL, "notes" text NOT NULL, "attributes" text NOT NULL CHECK ((JSON_VALID("attributes") OR "attributes" IS NULL)), "qualification" varchar(12) NOT NULL, "qualification_reason" varchar(500) NOT NULL, "version" integer unsigned NOT NULL CHECK ("version" >= 0), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "updated_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "archived_at" datetime NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "record_status_known" CHECK ("status" IN ('active', 'inactive', 'pending')), CONSTRAINT "record_score_0_to_100" CHECK (("score" IS NULL OR ("score" >= 0 AND "score" <= 100))));
INSERT INTO "new__records_record" ("id", "name", "look", "region", "category", "status", "score", "email", "domain", "phone", "notes", "attributes", "qualification", "qualification_reason", "version", "created_at", "updated_at", "archived_at", "organization_id") SELECT "id", "name", "look", "region", "category", "status", "score", "email", "domain", "phone", "notes", "attributes", "qualification", "qualification_reason", "version", "created_at", "updated_at", "archived_at", "organization_id" FROM "records_record";
DROP TABLE "records_record";
ALTER TABLE "new__records_record" RENAME TO "records_record";
CREATE INDEX "records_record_organization_id_120df185" ON "records_record" ("organization_id");
CREATE INDEX "record_name" ON "records_record" ("organization_id", "name", "id");
CREATE INDEX "record_look" ON "records_record" ("organization_id", "look");
CREATE INDEX "record_email" ON "records_record" ("organization_id", (LOWER("email")));
CREATE INDEX "record_domain" ON "records_record" ("organization_id", (LOWER("domain")));
CREATE INDEX "record_score" ON "records_record" ("organization_id", (COALESCE("score", -1)), "id");
CREATE INDEX "record_changed" ON "records_record" ("organization_id", "updated_at", "id");
CREATE INDEX "record_status" ON "records_record" ("organization_id", "status");
CREATE INDEX "record_region" ON "records_record" ("organization_id", "region");
CREATE INDEX "record_category" ON "records_record" ("organization_id", "category");
--
-- Create constraint record_qualification_known on model record
--
CREATE TABLE "new__records_record" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(200) NOT NULL, "look" varchar(100) NOT NULL, "region" varchar(50) NOT NULL, "category" varchar(80) NOT NULL, "status" varchar(10) NOT NULL, "score" smallint unsigned NULL CHECK ("score" >= 0), "email" varchar(254) NOT NULL, "domain" varchar(253) NOT NULL, "phone" varchar(40) NOT NULL, "notes" text NOT NULL, "attributes" text NOT NULL CHECK ((JSON_VALID("attributes") OR "attributes" IS NULL)), "qualification" varchar(12) NOT NULL, "qualification_reason" varchar(500) NOT NULL, "version" integer unsigned NOT NULL CHECK ("version" >= 0), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "updated_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "archived_at" datetime NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "record_status_known" CHECK ("status" IN ('active', 'inactive', 'pending')), CONSTRAINT "record_score_0_to_100" CHECK (("score" IS NULL OR ("score" >= 0 AND "score" <= 100))), CONSTRAINT "record_qualification_known" CHECK ("qualification" IN ('', 'qualified', 'disqualified')));
INSERT INTO "new__records_record" ("id", "name", "look", "region", "category", "status", "score", "email", "domain", "phone", "notes", "attributes", "qualification", "qualification_reason", "version", "created_at", "updated_at", "archived_at", "organization_id") SELECT "id", "name", "look", "region", "category", "status", "score", "email", "domain", "phone", "notes", "attributes", "qualification", "qualification_reason", "version", "created_at", "updated_at", "archived_at", "organization_id" FROM "records_record";
DROP TABLE "records_record";
ALTER TABLE "new__records_record" RENAME TO "records_record";
CREATE INDEX "records_record_organization_id_120df185" ON "records_record" ("organization_id");
CREATE INDEX "record_name" ON "records_record" ("organization_id", "name", "id");
CREATE INDEX "record_look" ON "records_record" ("organization_id", "look");
CREATE INDEX "record_email" ON "records_record" ("organization_id", (LOWER("email")));
CREATE INDEX "record_domain" ON "records_record" ("organization_id", (LOWER("domain")));
CREATE INDEX "record_score" ON "records_record" ("organization_id", (COALESCE("score", -1)), "id");
CREATE INDEX "record_changed" ON "records_record" ("organization_id", "updated_at", "id");
CREATE INDEX "record_status" ON "records_record" ("organization_id", "status");
CREATE INDEX "record_region" ON "records_record" ("organization_id", "region");
CREATE INDEX "record_category" ON "records_record" ("organization_id", "category");
--
-- Create index draft_newest on field(s) organization, -id of model draft
--
CREATE INDEX "draft_newest" ON "records_draft" ("organization_id", "id" DESC);
--
-- Create constraint draft_once_per_call on model draft
--
CREATE UNIQUE INDEX "draft_once_per_call" ON "records_draft" ("organization_id", "idempotency_key") WHERE NOT ("idempotency_key" = '');
--
-- Create constraint record_list_name on model recordlist
--
CREATE TABLE "new__records_recordlist" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(100) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "record_list_name" UNIQUE ("organization_id", "name"));
INSERT INTO "new__records_recordlist" ("id", "name", "created_at", "organization_id") SELECT "id", "name", "created_at", "organization_id" FROM "records_recordlist";
DROP TABLE "records_recordlist";
ALTER TABLE "new__records_recordlist" RENAME TO "records_recordlist";
CREATE INDEX "records_recordlist_organization_id_1f8b94f5" ON "records_recordlist" ("organization_id");
--
-- Create constraint list_entry_once on model listentry
--
CREATE TABLE "new__records_listentry" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "added_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "record_id" bigint NOT NULL REFERENCES "records_record" ("id") DEFERRABLE INITIALLY DEFERRED, "list_id" bigint NOT NULL REFERENCES "records_recordlist" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "list_entry_once" UNIQUE ("list_id", "record_id"));
INSERT INTO "new__records_listentry" ("id", "added_at", "record_id", "list_id") SELECT "id", "added_at", "record_id", "list_id" FROM "records_listentry";
DROP TABLE "records_listentry";
ALTER TABLE "new__records_listentry" RENAME TO "records_listentry";
CREATE INDEX "records_listentry_record_id_6467de8b" ON "records_listentry" ("record_id");
CREATE INDEX "records_listentry_list_id_194ff28d" ON "records_listentry" ("list_id");
-- migration restores.0001_initial
--
-- Create model RestoredLimit
--
CREATE TABLE "restores_restoredlimit" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "kind" varchar(20) NOT NULL, "row_id" bigint NOT NULL, "name" varchar(200) NOT NULL, "restored" text NULL CHECK ((JSON_VALID("restored") OR "restored" IS NULL)), "newer" text NULL CHECK ((JSON_VALID("newer") OR "newer" IS NULL)), "is_compared" bool NOT NULL, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_line_per_restored_limit" UNIQUE ("organization_id", "kind", "row_id"));
CREATE INDEX "restores_restoredlimit_organization_id_925b26d4" ON "restores_restoredlimit" ("organization_id");
-- migration schedules.0001_initial
--
-- Create model Schedule
--
CREATE TABLE "schedules_schedule" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "task" text NOT NULL, "cron" varchar(100) NOT NULL, "time_zone" varchar(64) NOT NULL, "next_at" datetime NULL, "last_at" datetime NULL, "fired" integer unsigned NOT NULL CHECK ("fired" >= 0), "is_active" bool NOT NULL, "problem" varchar(300) NOT NULL, "made_in_run" varchar(64) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "cancelled_at" datetime NULL, "cancelled_by" varchar(200) NOT NULL, "created_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "employee_id" bigint NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, "last_run_id" bigint NULL REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "made_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "schedule_has_a_time_while_active" CHECK ((("cancelled_at" IS NULL AND "is_active" AND "next_at" IS NOT NULL) OR (NOT "is_active" AND "next_at" IS NULL))));
CREATE INDEX "schedules_schedule_created_by_id_7a808dd9" ON "schedules_schedule" ("created_by_id");
CREATE INDEX "schedules_schedule_employee_id_4066beec" ON "schedules_schedule" ("employee_id");
CREATE INDEX "schedules_schedule_last_run_id_ccb4d66c" ON "schedules_schedule" ("last_run_id");
CREATE INDEX "schedules_schedule_made_by_id_df81945b" ON "schedules_schedule" ("made_by_id");
CREATE INDEX "schedule_newest" ON "schedules_schedule" ("organization_id", "id" DESC);
CREATE INDEX "schedule_due" ON "schedules_schedule" ("next_at") WHERE "next_at" IS NOT NULL;
-- migration sessions.0001_initial
--
-- Create model Session
--
CREATE TABLE "django_session" ("session_key" varchar(40) NOT NULL PRIMARY KEY, "session_data" text NOT NULL, "expire_date" datetime NOT NULL);
CREATE INDEX "django_session_expire_date_a5c62663" ON "django_session" ("expire_date");
-- migration triggers.0001_initial
--
-- Create model Trigger
--
CREATE TABLE "triggers_trigger" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "public_id" varchar(40) NOT NULL UNIQUE, "scheme" varchar(16) NOT NULL, "header" varchar(80) NOT NULL, "secret" text NOT NULL, "task" text NOT NULL, "filters" text NOT NULL CHECK ((JSON_VALID("filters") OR "filters" IS NULL)), "repeat_hours" smallint unsigned NOT NULL CHECK ("repeat_hours" >= 0), "max_queued" smallint unsigned NOT NULL CHECK ("max_queued" >= 0), "is_active" bool NOT NULL, "removed_at" datetime NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "created_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "employee_id" bigint NULL REFERENCES "employees_employee" ("id") DEFERRABLE INITIALLY DEFERRED, "made_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED, "secret_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "task_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model ReceivedMessage
--
CREATE TABLE "triggers_receivedmessage" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "key" varchar(80) NOT NULL, "status" varchar(10) NOT NULL, "reason" varchar(300) NOT NULL, "requesters" text NOT NULL CHECK ((JSON_VALID("requesters") OR "requesters" IS NULL)), "payload" text NOT NULL, "template" text NOT NULL, "received_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "replay_of_id" bigint NULL REFERENCES "triggers_receivedmessage" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NULL UNIQUE REFERENCES "runs_run" ("id") DEFERRABLE INITIALLY DEFERRED, "trigger_id" bigint NOT NULL REFERENCES "triggers_trigger" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create index triggers_newest on field(s) organization, -id of model trigger
--
CREATE INDEX "triggers_newest" ON "triggers_trigger" ("organization_id", "id" DESC);
--
-- Create index messages_of_trigger on field(s) trigger, -id of model receivedmessage
--
CREATE INDEX "messages_of_trigger" ON "triggers_receivedmessage" ("trigger_id", "id" DESC);
--
-- Create index messages_by_key on field(s) trigger, key, -id of model receivedmessage
--
CREATE INDEX "messages_by_key" ON "triggers_receivedmessage" ("trigger_id", "key", "id" DESC) WHERE "status" = 'started';
--
-- Create index messages_without_run on field(s) trigger, -id of model receivedmessage
--
CREATE INDEX "messages_without_run" ON "triggers_receivedmessage" ("trigger_id", "id" DESC) WHERE NOT ("status" = 'started');
CREATE INDEX "triggers_trigger_created_by_id_265631d7" ON "triggers_trigger" ("created_by_id");
CREATE INDEX "triggers_trigger_employee_id_f3f43b6c" ON "triggers_trigger" ("employee_id");
CREATE INDEX "triggers_trigger_made_by_id_87f79034" ON "triggers_trigger" ("made_by_id");
CREATE INDEX "triggers_trigger_secret_by_id_b3d0881d" ON "triggers_trigger" ("secret_by_id");
CREATE INDEX "triggers_trigger_task_by_id_b6617d2a" ON "triggers_trigger" ("task_by_id");
CREATE INDEX "triggers_receivedmessage_by_id_1f98c726" ON "triggers_receivedmessage" ("by_id");
CREATE INDEX "triggers_receivedmessage_replay_of_id_e0dd80c4" ON "triggers_receivedmessage" ("replay_of_id");
-- migration webhooks.0001_initial
--
-- Create model Webhook
--
CREATE TABLE "webhooks_webhook" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "failing_since" datetime NULL, "problem" varchar(300) NOT NULL, "name" varchar(80) NOT NULL, "address" text NOT NULL, "kinds" text NOT NULL CHECK ((JSON_VALID("kinds") OR "kinds" IS NULL)), "sends_values" bool NOT NULL, "is_active" bool NOT NULL, "busy_until" datetime NULL, "rests_until" datetime NULL, "failures" integer unsigned NOT NULL CHECK ("failures" >= 0), "is_slow" bool NOT NULL, "off_reason" varchar(300) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "told_from" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "created_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "organization_id" bigint NOT NULL REFERENCES "accounts_organization" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create model WebhookDelivery
--
CREATE TABLE "webhooks_webhookdelivery" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "tries" smallint unsigned NOT NULL CHECK ("tries" >= 0), "problem" varchar(300) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "ended_at" datetime NULL, "public_id" char(32) NOT NULL, "kind" varchar(20) NOT NULL, "run_id" bigint NOT NULL, "seq" integer unsigned NOT NULL CHECK ("seq" >= 0), "previous_seq" integer unsigned NULL CHECK ("previous_seq" >= 0), "payload" text NOT NULL CHECK ((JSON_VALID("payload") OR "payload" IS NULL)), "values" text NOT NULL CHECK ((JSON_VALID("values") OR "values" IS NULL)), "status" varchar(10) NOT NULL, "due_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "wanted_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "answer_status" smallint unsigned NULL CHECK ("answer_status" >= 0), "duration_ms" integer unsigned NULL CHECK ("duration_ms" >= 0), "webhook_id" bigint NOT NULL);
--
-- Create model WebhookSecret
--
CREATE TABLE "webhooks_webhooksecret" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "secret" text NOT NULL, "valid_until" datetime NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "webhook_id" bigint NOT NULL REFERENCES "webhooks_webhook" ("id") DEFERRABLE INITIALLY DEFERRED);
--
-- Create index webhooks_newest on field(s) organization, -id of model webhook
--
CREATE INDEX "webhooks_newest" ON "webhooks_webhook" ("organization_id", "id" DESC);
--
-- Create index webhooks_active on field(s) organization of model webhook
--
CREATE INDEX "webhooks_active" ON "webhooks_webhook" ("organization_id") WHERE "is_active";
--
-- Create index webhook_deliveries_due on field(s) webhook, due_at, id of model webhookdelivery
--
CREATE INDEX "webhook_deliveries_due" ON "webhooks_webhookdelivery" ("webhook_id", "due_at", "id") WHERE "status" = 'waiting';
--
-- Create index deliveries_of_webhook on field(s) webhook, -id of model webhookdelivery
--
CREATE INDEX "deliveries_of_webhook" ON "webhooks_webhookdelivery" ("webhook_id", "id" DESC);
--
-- Create index webhook_deliveries_of_run on field(s) run_id, webhook, -seq of model webhookdelivery
--
CREATE INDEX "webhook_deliveries_of_run" ON "webhooks_webhookdelivery" ("run_id", "webhook_id", "seq" DESC);
--
-- Create index webhook_deliveries_ended on field(s) ended_at of model webhookdelivery
--
CREATE INDEX "webhook_deliveries_ended" ON "webhooks_webhookdelivery" ("ended_at") WHERE "ended_at" IS NOT NULL;
--
-- Create constraint ended_webhook_delivery_has_a_time on model webhookdelivery
--
CREATE TABLE "new__webhooks_webhookdelivery" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "tries" smallint unsigned NOT NULL CHECK ("tries" >= 0), "problem" varchar(300) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "ended_at" datetime NULL, "public_id" char(32) NOT NULL, "kind" varchar(20) NOT NULL, "run_id" bigint NOT NULL, "seq" integer unsigned NOT NULL CHECK ("seq" >= 0), "previous_seq" integer unsigned NULL CHECK ("previous_seq" >= 0), "payload" text NOT NULL CHECK ((JSON_VALID("payload") OR "payload" IS NULL)), "values" text NOT NULL CHECK ((JSON_VALID("values") OR "values" IS NULL)), "status" varchar(10) NOT NULL, "due_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "wanted_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "answer_status" smallint unsigned NULL CHECK ("answer_status" >= 0), "duration_ms" integer unsigned NULL CHECK ("duration_ms" >= 0), "webhook_id" bigint NOT NULL, CONSTRAINT "ended_webhook_delivery_has_a_time" CHECK ((("ended_at" IS NULL AND "status" = 'waiting') OR (NOT ("status" = 'waiting') AND "ended_at" IS NOT NULL))));
INSERT INTO "new__webhooks_webhookdelivery" ("id", "tries", "problem", "created_at", "ended_at", "public_id", "kind", "run_id", "seq", "previous_seq", "payload", "values", "status", "due_at", "wanted_at", "answer_status", "duration_ms", "webhook_id") SELECT "id", "tries", "problem", "created_at", "ended_at", "public_id", "kind", "run_id", "seq", "previous_seq", "payload", "values", "status", "due_at", "wanted_at", "answer_status", "duration_ms", "webhook_id" FROM "webhooks_webhookdelivery";
DROP TABLE "webhooks_webhookdelivery";
ALTER TABLE "new__webhooks_webhookdelivery" RENAME TO "webhooks_webhookdelivery";
CREATE INDEX "webhooks_webhook_created_by_id_c1e90fbe" ON "webhooks_webhook" ("created_by_id");
CREATE INDEX "webhooks_webhooksecret_webhook_id_a47e3163" ON "webhooks_webhooksecret" ("webhook_id");
CREATE INDEX "webhook_deliveries_due" ON "webhooks_webhookdelivery" ("webhook_id", "due_at", "id") WHERE "status" = 'waiting';
CREATE INDEX "deliveries_of_webhook" ON "webhooks_webhookdelivery" ("webhook_id", "id" DESC);
CREATE INDEX "webhook_deliveries_of_run" ON "webhooks_webhookdelivery" ("run_id", "webhook_id", "seq" DESC);
CREATE INDEX "webhook_deliveries_ended" ON "webhooks_webhookdelivery" ("ended_at") WHERE "ended_at" IS NOT NULL;
