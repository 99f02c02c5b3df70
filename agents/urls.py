"""Addresses of pages."""

from django.urls import path

from .views import account, approvals, decisions, employees, home, runs

urlpatterns = [
    path("", home.home, name="home"),
    path("login/", account.LoginPage.as_view(), name="login"),
    path("logout/", account.logout_page, name="logout"),
    path("switch-organization/", account.switch, name="switch-organization"),
    path("employees/", employees.all_employees, name="employees"),
    path("runs/", runs.all_runs, name="runs"),
    path("runs/<int:run_id>/", runs.run_page, name="run"),
    path("runs/<int:run_id>/cancel/", runs.cancel, name="cancel"),
    path("runs/<int:run_id>/message/", runs.add_message, name="message"),
    path("runs/<int:run_id>/continue/", runs.continue_run, name="continue"),
    path("approvals/", approvals.inbox, name="approvals"),
    path("approvals/<int:approval_id>/", approvals.one_card, name="approval"),
    path("approvals/<int:approval_id>/card/", approvals.card_fragment, name="card"),
    path("approvals/<int:approval_id>/approve/", decisions.approve, name="approve"),
    path("approvals/<int:approval_id>/deny/", decisions.deny, name="deny"),
    path("approvals/<int:approval_id>/edit/", decisions.edit, name="edit"),
    path("approvals/<int:approval_id>/undo/", decisions.undo, name="undo"),
    path("approvals/<int:approval_id>/resolve/", decisions.resolve, name="resolve"),
    path("<path:rest>/", home.nothing_here, name="nothing"),
]
