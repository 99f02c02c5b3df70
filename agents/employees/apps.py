"""The Django app for employees."""

from django.apps import AppConfig


class EmployeesConfig(AppConfig):
    name = "agents.employees"
    verbose_name = "Employees"
