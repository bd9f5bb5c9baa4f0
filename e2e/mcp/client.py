"""Calls every tool of `strew mcp` with the official Python client, which judges each result by its outputSchema.

Usage: client.py PROGRAM FOLDER
"""

import asyncio
import json
import sys
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def field(value, *names):
    """A field whose name differs between versions of the client."""
    return next(getattr(value, name) for name in names if hasattr(value, name))


async def main(program: str, folder: str) -> None:
    calls = json.loads((Path(__file__).parent / "calls.json").read_text())
    server = StdioServerParameters(command=program, args=["mcp", "--root", folder])
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            names = {tool.name for tool in (await session.list_tools()).tools}
            for call in calls:
                result = await session.call_tool(call["tool"], call["arguments"])
                content = field(result, "structured_content", "structuredContent")
                assert not field(result, "is_error", "isError"), (call, result.content)
                assert call.get("has", "apiVersion") in json.dumps(content), call
            called = {call["tool"] for call in calls}
            assert called == names, f"tools {names}, called {called}"
            print(f"{len(calls)} calls of {len(names)} tools: each result is of its schema")


asyncio.run(main(*sys.argv[1:]))
