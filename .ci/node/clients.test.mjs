// The official TypeScript clients of both generations against one server.
//
//   MCP_URL      URL of the running server
//   MCP_COMMAND  the same server over stdio, a JSON array
//   MCP_CALLS    the tools it must list, as a JSON object of their names; each
//                with its arguments and a text that its result must hold
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as v1 from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HTTPV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';

const url = new URL(process.env.MCP_URL);
const [command, ...args] = JSON.parse(process.env.MCP_COMMAND);
const calls = JSON.parse(process.env.MCP_CALLS);

const modern = '2026-07-28';
const legacy = '2025-11-25';
const info = { name: 'famcp-ci', version: '1.0.0' };
const capabilities = { elicitation: {} };

// The user says yes: a form's required booleans are true, its strings "yes".
const accept = ({ params: { requestedSchema } }) => ({
  action: 'accept',
  content: Object.fromEntries(
    Object.entries(requestedSchema?.properties ?? {}).map(([name, { type }]) => [name, type === 'boolean' ? true : 'yes']),
  ),
});

function clientV1() {
  const client = new v1.Client(info, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, accept);
  return client;
}

function clientV2(mode) {
  const client = new v2.Client(info, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', accept);
  return client;
}

const stdio = { command, args, stderr: 'inherit' };
const connections = [
  { name: '1.x over HTTP', client: clientV1, transport: () => new HTTPV1(url) },
  { name: '1.x over stdio', client: clientV1, transport: () => new StdioV1(stdio) },
  ...['legacy', 'auto', { pin: modern }].flatMap((mode) => {
    const name = `2.x ${mode.pin ?? mode}`;
    const revision = mode === 'legacy' ? legacy : modern;
    const client = () => clientV2(mode);
    return [
      { name: `${name} over HTTP`, client, revision, transport: () => new v2.StreamableHTTPClientTransport(url) },
      { name: `${name} over stdio`, client, revision, transport: () => new StdioV2(stdio) },
    ];
  }),
];

for (const { name, client: newClient, transport, revision } of connections) {
  test(name, { timeout: 60_000 }, async (t) => {
    const client = newClient();
    await client.connect(transport());
    t.after(() => client.close());
    if (revision) assert.equal(client.getNegotiatedProtocolVersion(), revision);

    const listed = async () => (await client.listTools()).tools.map((tool) => tool.name).sort();
    await t.test('lists its tools', async () => assert.deepEqual(await listed(), Object.keys(calls).sort()));

    for (const [tool, want] of Object.entries(calls)) {
      await t.test(`calls ${tool}`, async () => {
        const result = await client.callTool({ name: tool, arguments: want.arguments });
        assert.notEqual(result.isError, true, JSON.stringify(result.content));
        assert.ok(JSON.stringify(result).includes(want.text), JSON.stringify(result));
      });
    }

    await t.test('keeps the connection after an unknown tool', async () => {
      await assert.rejects(client.callTool({ name: 'no_such_tool', arguments: {} }), { code: -32602 });
      assert.ok((await listed()).length > 0);
    });

    await t.test('keeps the connection after bad arguments', async () => {
      const [tool] = Object.keys(calls);
      const result = await client.callTool({ name: tool, arguments: { no_such_argument: 1 } });
      assert.equal(result.isError, true);
      assert.match(JSON.stringify(result.content), /no_such_argument/);
      assert.ok((await listed()).length > 0);
    });

    await t.test('reads every resource', async () => {
      const { resources } = await client.listResources();
      assert.ok(resources.length > 0, 'no resources');
      for (const { uri } of resources) {
        const { contents } = await client.readResource({ uri });
        assert.equal(contents[0].uri, uri);
        assert.ok(contents[0].text || contents[0].blob, `${uri} is empty`);
      }
    });

    await t.test('gets the prompts that need no arguments', async () => {
      const { prompts } = await client.listPrompts();
      const plain = prompts.filter((prompt) => !prompt.arguments?.some((argument) => argument.required));
      assert.ok(plain.length > 0, 'no prompt without required arguments');
      for (const { name } of plain) {
        const { messages } = await client.getPrompt({ name });
        assert.ok(messages.length > 0, `${name} has no messages`);
      }
    });
  });
}
