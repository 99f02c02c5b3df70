from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0012_figures"),
    ]

    operations = [
        migrations.AlterField(
            model_name="event",
            name="type",
            field=models.CharField(
                choices=[
                    ("run_started", "Run Started"),
                    ("run_titled", "Run Titled"),
                    ("pass_started", "Pass Started"),
                    ("assistant_message", "Assistant Message"),
                    ("tool_start", "Tool Start"),
                    ("tool_progress", "Tool Progress"),
                    ("tool_result", "Tool Result"),
                    ("tool_skipped", "Tool Skipped"),
                    ("tool_rejected", "Tool Rejected"),
                    ("approval_requested", "Approval Requested"),
                    ("approval_decided", "Approval Decided"),
                    ("question_asked", "Question Asked"),
                    ("question_answered", "Question Answered"),
                    ("message_added", "Message Added"),
                    ("run_waiting", "Run Waiting"),
                    ("run_resumed", "Run Resumed"),
                    ("run_needs_attention", "Run Needs Attention"),
                    ("call_resolved", "Call Resolved"),
                    ("cancel_requested", "Cancel Requested"),
                    ("run_finished", "Run Finished"),
                    ("provider_delayed", "Provider Delayed"),
                    ("history_shortened", "History Shortened"),
                ],
                max_length=24,
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="status",
            field=models.CharField(
                choices=[
                    ("queued", "Queued"),
                    ("running", "Running"),
                    ("waiting", "Waiting"),
                    ("needs_attention", "Needs attention"),
                    ("succeeded", "Succeeded"),
                    ("failed", "Failed"),
                    ("cancelled", "Cancelled"),
                ],
                default="queued",
                max_length=16,
            ),
        ),
    ]
