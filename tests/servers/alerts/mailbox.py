"""A mail server of aiosmtpd (PyPI): PORT FOLDER. It drops each second connection, and writes each mail to a file."""
import asyncio
import pathlib
import sys

from aiosmtpd.smtp import SMTP

port, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
connections = 0
mails = 0


class Handler:
    async def handle_DATA(self, server, session, envelope):
        global mails
        mails += 1
        (folder / f"mail-{mails}.part").write_bytes(envelope.content)
        (folder / f"mail-{mails}.part").rename(folder / f"mail-{mails}.eml")
        return "250 OK"


class Dropping(SMTP):
    def connection_made(self, transport):
        global connections
        connections += 1
        if connections % 2:
            transport.abort()
            return
        super().connection_made(transport)


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Dropping(Handler(), hostname="mail.example"), "127.0.0.1", port)
    print("ready", flush=True)
    await server.serve_forever()


asyncio.run(main())
