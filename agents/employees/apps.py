"""The Django app of this folder's models."""

from django.apps import AppConfig


class EmployeesConfig(AppConfig):
    name = "agents.employees"
    verbose_name = "Employees"
