"""The channel `phone`: text messages through a plain HTTP gateway, or one that apprise knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import quote

from aioflow.authoring.services import Scope, ServiceHost
from aioflow.config.configuration import as_configuration
from aioflow.config.secrets import Secrets
from aioflow.errors import AioflowError, InputError
from aioflow.messages.accounts import choose, fill_in_address
from aioflow.messages.chat.apprise_child import ChildCall
from aioflow.messages.chat.channel import AppriseCalls, answered, check_installed, unknown_secrets
from aioflow.messages.chat.settings import has_password
from aioflow.messages.outbox.contributions import kept_rows
from aioflow.messages.outbox.message import ComposedContents, DeliveryError, Message, text_of
from aioflow.messages.sms.gateway import Gateway, Text
from aioflow.messages.sms.settings import PHONE, PhoneSettings, phone_number
from aioflow.relation import Relation

KIND = "phone"
_SAMPLE = "A test of aioflow: plans can send text messages."
_EXAMPLE = 'url = "https://gateway.example/send"'
_NUMBER = "{to}"


class PhoneAccounts:
    """The accounts of a configuration; a service of the engine."""

    scope: ClassVar[Scope] = "engine"

    def __init__(self, configuration: Mapping[str, Any], secrets: Secrets | None = None) -> None:
        self._accounts: dict[str, PhoneSettings] = as_configuration(configuration).sections(PHONE)
        self.secrets = secrets or Secrets()

    @classmethod
    def open_service(cls, host: ServiceHost) -> PhoneAccounts:
        return cls(host.configuration)

    async def close(self) -> None:
        """Nothing is open."""

    def find(self, name: str | None) -> tuple[str, PhoneSettings]:
        """The account of a name, or the default one, and that name; an InputError says what is missing."""
        chosen, settings = choose(KIND, self._accounts, name, _EXAMPLE)
        if not settings.url:
            raise InputError(
                f"[{KIND}.{chosen}] has no url: write {_EXAMPLE}, or one of apprise's with {{to}}"
            )
        return chosen, settings

    def problems(self, account: str | None) -> list[str]:
        """Return the obstacles to the use of an account, as far as they show without asking the gateway."""
        try:
            name, settings = self.find(account)
        except InputError as error:
            return [str(error)]
        label = f"[{KIND}.{name}]"
        texts = [settings.url, settings.json or "", settings.body or ""]
        missing = unknown_secrets(
            label, [*texts, *settings.form.values(), *settings.headers.values()], self.secrets
        )
        if missing:
            return missing
        if has_password(settings.url):
            return [f'{label}: a password stands in its url; write "secret:NAME" in its place']
        try:
            self.usable(name, settings)
        except AioflowError as error:
            return [str(error)]
        return []

    def usable(self, name: str, settings: PhoneSettings) -> PhoneSettings:
        """The settings with the URL itself; an AioflowError says what does not fit in them."""
        label = f"[{KIND}.{name}]"
        known = replace(settings, url=fill_in_address(settings.url, self.secrets))
        if not known.is_plain:
            check_installed(f"a gateway of apprise in {label}")
            if _NUMBER not in known.url:
                raise InputError(f"{label}: {{to}} must stand in the url where apprise expects the number")
            return known
        said = [known.url, *known.form.values(), known.json or "", known.body or ""]
        given = sum((bool(known.form), known.json is not None, known.body is not None))
        if given > 1:
            raise InputError(f"{label}: form, json and body exclude each other")
        if given or known.method in ("GET", "HEAD", "DELETE"):
            for needed in (_NUMBER, "{text}"):
                if not any(needed in each for each in (*said, *known.headers.values())):
                    raise InputError(f"{label}: {needed} stands neither in its url nor in what is sent")
        return known


class PhoneChannel:
    """Delivers text messages; their content has `to`, a number, and `text`."""

    def __init__(self, configuration: Mapping[str, Any], *, secrets: Secrets | None = None) -> None:
        self._accounts = PhoneAccounts(configuration, secrets)
        self._gateways: dict[str, Gateway] = {}
        self._calls = AppriseCalls()

    def problems(self, account: str | None) -> list[str]:
        """Return the settings that are missing before this account can be used."""
        return self._accounts.problems(account)

    def samples(self, account: str, to: str | None) -> list[dict[str, Any]]:
        """Return the content of a sample text message."""
        if to is None:
            raise InputError(f"say to which number {KIND}.{account} is to send, with --to +491511234567")
        return [{"to": phone_number(to), "text": _SAMPLE}]

    def compose(
        self, account: str, recipe: Mapping[str, Any], relations: Sequence[Relation], doubt: str
    ) -> ComposedContents:
        """Return the contents for each number about a relation that was gathered."""
        from aioflow.messages.content.short_text import TextMessages

        messages = TextMessages.of_recipe(*self._accounts.find(account), recipe)
        messages.doubt = doubt
        with kept_rows(relations) as kept:
            return ComposedContents(messages.for_relation(*kept[0]), messages.warnings)

    async def deliver(self, message: Message) -> str:
        """Have a text message sent."""
        to, text = text_of(message, "to"), text_of(message, "text")
        try:
            name, settings = self._accounts.find(message.account or None)
            known = self._accounts.usable(name, settings)
            if known.is_plain:
                return await self._gateway(name, known).send(Text(to, text, message.key))
        except DeliveryError:
            raise
        except AioflowError as error:
            raise DeliveryError(str(error), final=True) from None
        url = known.url.replace(_NUMBER, quote(to, safe=""))
        call = ChildCall(url, text, key=message.key, seconds=settings.total_seconds, split=False)
        return answered(f"[{KIND}.{name}]", await self._calls.send(call))

    def _gateway(self, account: str, settings: PhoneSettings) -> Gateway:
        if account not in self._gateways:
            self._gateways[account] = Gateway(f"[{KIND}.{account}]", settings, self._accounts.secrets)
        return self._gateways[account]

    async def close(self) -> None:
        await self._calls.close()
        while self._gateways:
            _, gateway = self._gateways.popitem()
            await gateway.close()
