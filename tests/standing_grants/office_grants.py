"""Standing grants for six offices, made by hand from the first half of their conversations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.standing_grants.granting import equals
from tests.standing_grants.shop_tools import comes_from, each, typed
from tools.toolbox.conditions import Condition, Rule


class OfficeGrant(NamedTuple):
    """A tool, the conditions of its calls, and the params that may have any value."""

    tool: str
    conditions: tuple[Condition, ...]
    free: tuple[str, ...] = ()


YES_OR_NO = [True, False]
YES_OR_NULL = [True, None]


def one_of(param: str, *values: Any) -> Condition:
    return Condition(param, Rule.ONE_OF, list(values))


def either(*conditions: Condition, also: tuple[Any, ...] = ()) -> Condition:
    """Build the condition that one of these sources has the value."""
    sources = [source for condition in conditions for source in condition.value["sources"]]
    return Condition(conditions[0].param, Rule.COMES_FROM, {"sources": sources, "also": list(also)})


def list_office_grants() -> Iterator[OfficeGrant]:
    yield from _list_webshop()
    yield from _list_airline()
    yield from _list_helpdesk()
    yield from _list_accounts_payable()
    yield from _list_others()


def _list_webshop() -> Iterator[OfficeGrant]:
    cc, closes = equals("cc", []), one_of("close", *YES_OR_NO)
    searched = (typed("search"), one_of("status", "open", "pending", None))
    found = comes_from("ticketId", "webshop.listTickets", "tickets.ticketId", *searched, only=True)
    ours = each("cc", Condition("cc", Rule.HOST, "nordvind-outdoor.example"))
    for ticket in (typed("ticketId"), found):
        yield OfficeGrant("webshop.replyToTicket", (ticket, cc, closes), ("text",))
        yield OfficeGrant("webshop.replyToTicket", (ticket, ours, closes), ("text",))
    of_tickets = [
        comes_from("orderNumber", "webshop.getTicket", "orderNumber", ticket)
        for ticket in (typed("ticketId"), found)
    ]

    def of_order(param: str, path: str) -> Condition:
        looked_up = (typed("orderNumber"), *of_tickets)
        return either(*(comes_from(param, "webshop.getOrder", path, where) for where in looked_up))

    days = (one_of("window", "08-12", "12-16", "16-20"), of_order("shipmentId", "shipmentIds"))
    yield OfficeGrant("webshop.rescheduleDelivery", days, ("date", "driverNote"))
    refund = (
        of_order("orderNumber", "orderNumber"),
        of_order("paymentId", "payment.paymentId"),
        of_order("amount", "lines.unitPrice"),
        of_order("currency", "currency"),
        each("lineIds", of_order("lineIds", "lines.lineId")),
        one_of("reason", "damaged", "not_delivered", "returned", "cancelled"),
        equals("payout.method", "original"),
        equals("payout.iban", None),
        equals("payout.accountHolder", None),
    )
    yield OfficeGrant("webshop.createRefund", refund, ("note",))


def _list_airline() -> Iterator[OfficeGrant]:
    case = typed("caseId")
    codes = one_of("resolutionCode", "refunded", "rebooked", "voucher", "information", "declined")
    closed = (case, one_of("status", "resolved", "closed"), codes, equals("assignee", None))
    yield OfficeGrant("airline.updateCase", closed, ("internalNote",))
    of_case = comes_from("recordLocator", "airline.getCase", "recordLocator", case)
    customer = (typed("frequentFlyerNumber", None), typed("email", None), typed("lastName", None))
    of_customer = comes_from(
        "recordLocator", "airline.findCustomer", "customers.reservations", *customer, only=True
    )

    def of_booking(param: str, path: str) -> Condition:
        looked_up = (typed("recordLocator"), of_case, of_customer)
        return either(
            *(comes_from(param, "airline.getReservation", path, where) for where in looked_up)
        )

    services = (
        of_booking("recordLocator", "recordLocator"),
        of_booking("passengerId", "passengers.passengerId"),
        each("segmentIds", of_booking("segmentIds", "segments.segmentId")),
        one_of("code", "PETC", "UMNR", "WCHC", "WCHR", "WCHS", "VGML"),
    )
    yield OfficeGrant("airline.addSpecialService", services, ("text",))
    voucher = (
        of_booking("customerId", "customerId"),
        of_booking("deliverTo", "contact.email"),
        typed("amount"),
        Condition("amount", Rule.MAXIMUM, 200),
        equals("currency", "EUR"),
        one_of("validMonths", 12, 24),
        one_of("reason", "delay", "service_failure", "goodwill", "baggage"),
    )
    yield OfficeGrant("airline.issueVoucher", voucher, ("message",))
    receivers = either(
        of_booking("to", "contact.email"),
        comes_from("to", "airline.findCustomer", "customers.email", *customer, only=True),
    )
    message = (
        typed("caseId", None),
        each("to", receivers),
        equals("cc", []),
        one_of("language", "en", "de", "fr", "es", "pt"),
        either(of_booking("attachReservation", "recordLocator"), also=(None,)),
    )
    yield OfficeGrant("airline.sendMessage", message, ("subject", "body"))
    quoted = (typed("recordLocator"), each("passengerIds", typed("passengerIds"), None))
    refund = (
        of_booking("recordLocator", "recordLocator"),
        of_booking("paymentId", "payment.paymentId"),
        comes_from(
            "amount", "airline.quoteRefund", "total", *quoted, one_of("reason", "voluntary")
        ),
        equals("currency", "EUR"),
        equals("destination.type", "original_payment"),
        equals("destination.iban", None),
        equals("destination.accountHolder", None),
        one_of("reason", "voluntary"),
    )
    yield OfficeGrant("airline.issueRefund", refund, ("note",))


def _list_helpdesk() -> Iterator[OfficeGrant]:
    ticket = typed("ticketId")
    reply = (ticket, equals("cc", []), equals("visibility", "public"))
    yield OfficeGrant("helpdesk.replyToTicket", reply, ("body",))
    state = (
        ticket,
        one_of("state", "resolved", "pending"),
        equals("priority", None),
        equals("assignmentGroup", None),
    )
    yield OfficeGrant("helpdesk.updateTicket", (*state, equals("resolution", None)))
    done = (*state, one_of("resolution.code", "fixed", "fulfilled"))
    yield OfficeGrant("helpdesk.updateTicket", done, ("resolution.notes",))
    reset = (
        comes_from("userId_", "helpdesk.getTicket", "requesterId", ticket),
        equals("kind", "password"),
        equals("deliverTo.channel", "registered_mobile"),
        equals("deliverTo.address", None),
        one_of("mustChange", *YES_OR_NO[:1]),
        equals("newMfaPhone", None),
    )
    yield OfficeGrant("helpdesk.resetCredentials", reset)


def _list_accounts_payable() -> Iterator[OfficeGrant]:
    looked_up = (
        typed("supplierName", None),
        typed("reference"),
        one_of("status", "approved", None),
    )
    found = "accounts_payable.searchInvoices"
    supplier = comes_from("supplierId", found, "invoices.supplierId", *looked_up, only=True)
    email = "suppliers.contacts.email"
    to_supplier = either(
        comes_from("to", "accounts_payable.getSupplier", email, supplier),
        comes_from("to", "accounts_payable.getSupplier", email, typed("name"), only=True),
    )
    mail = (
        each("to", to_supplier),
        equals("replyToMessageId", None),
        equals("attachDocuments", []),
    )
    yield OfficeGrant("accounts_payable.sendEmail", (*mail, equals("cc", [])), ("subject", "body"))
    ours = each("cc", Condition("cc", Rule.HOST, "kestrel-hydraulics.example"))
    yield OfficeGrant("accounts_payable.sendEmail", (*mail, ours), ("subject", "body"))
    blocked = (
        comes_from("documentNumber", found, "invoices.documentNumber", *looked_up, only=True),
        equals("status", "blocked"),
        one_of("reasonCode", "price_variance", "quantity_variance", "goods_returned"),
    )
    yield OfficeGrant("accounts_payable.setInvoiceStatus", blocked, ("comment",))


def _list_others() -> Iterator[OfficeGrant]:
    stages = one_of("stage", "applied", "screening", "interview", "final", None)
    found = comes_from(
        "candidateId", "recruiting.listCandidates", "candidates.candidateId", typed("jobId"),
        stages, only=True,
    )  # fmt: skip
    for candidate in (typed("candidateId"), found):
        note = (candidate, one_of("visibleTo", "recruiters", "hiring_team"))
        yield OfficeGrant("recruiting.addNote", note, ("text",))
        stage = (candidate, typed("jobId"), equals("stage", "screening"))
        yield OfficeGrant("recruiting.moveCandidate", stage, ("reason",))
    tenant = comes_from(
        "to", "property_management.searchTenancies", "tenancies.tenants.email", typed("query"),
        one_of("includeEnded", *YES_OR_NULL), only=True,
    )  # fmt: skip
    repair = (typed("repairId"), typed("unitId", None), equals("status", None))
    found = comes_from(
        "contractorId", "property_management.listRepairs", "repairs.contractorId", *repair,
        only=True,
    )  # fmt: skip
    contractor = comes_from(
        "to", "property_management.getContractors", "contractors.email", found,
        equals("trade", None), only=True,
    )  # fmt: skip
    for receiver in (tenant, contractor):
        mail = (each("to", receiver), equals("cc", []))
        yield OfficeGrant("property_management.sendMessage", mail, ("subject", "body"))
