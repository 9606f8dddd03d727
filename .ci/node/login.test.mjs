// The official TypeScript clients of both generations find out where to log in,
// log in through the development identity provider, and call a tool.
//
//   LOGIN_URL      URL of a server of the mode embedded that refuses callers
//                  without credentials
//   DISCOVERY_URL  URL of one that lets them look around
//   LOGIN_CALL     the tool call to make, as a JSON object
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as v1 from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as HTTPV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as v2 from '@modelcontextprotocol/client';

const info = { name: 'famcp-ci', version: '1.0.0' };
const redirectUrl = 'http://127.0.0.1:1/callback'; // nobody listens: the test reads where it is sent

// browser opens the consent page, allows, and returns the code.
async function browser(authorization) {
  const page = await fetch(authorization);
  const html = await page.text();
  assert.equal(page.status, 200, html);
  const ticket = html.match(/name="ticket" value="([^"]+)"/)[1].replaceAll('&#43;', '+').replaceAll('&amp;', '&');
  const form = new URLSearchParams({ ticket, answer: 'allow', user: 'ann' });
  for (const [, scope] of html.matchAll(/name="scope" value="([^"]+)"/g)) form.append('scope', scope);
  const sent = await fetch(new URL(authorization.pathname, authorization), { method: 'POST', body: form, redirect: 'manual' });
  const to = new URL(sent.headers.get('location') ?? assert.fail(`${sent.status} ${await sent.text()}`));
  assert.equal(to.origin + to.pathname, redirectUrl);
  assert.equal(to.searchParams.get('state'), authorization.searchParams.get('state'));
  return to.searchParams;
}

// provider is what a client keeps of its login.
function provider() {
  const kept = {};
  return {
    kept,
    redirectUrl,
    clientMetadata: { client_name: 'famcp-ci', redirect_uris: [redirectUrl], token_endpoint_auth_method: 'none' },
    clientInformation: () => ({ client_id: 'famcp-dev' }),
    state: () => 'state-of-the-test',
    tokens: () => kept.tokens,
    saveTokens: (tokens) => { kept.tokens = tokens; },
    discoveryState: () => kept.discovery,
    saveDiscoveryState: (state) => { kept.discovery = state; },
    codeVerifier: () => kept.verifier,
    saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
    redirectToAuthorization: async (authorization) => { kept.answer = await browser(authorization); },
  };
}

const generations = {
  '1.x': { client: () => new v1.Client(info), transport: (url, authProvider) => new HTTPV1(url, { authProvider }) },
  '2.x legacy': {
    client: () => new v2.Client(info, { versionNegotiation: { mode: 'legacy' } }),
    transport: (url, authProvider) => new v2.StreamableHTTPClientTransport(url, { authProvider }),
  },
  '2.x modern': {
    client: () => new v2.Client(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
    transport: (url, authProvider) => new v2.StreamableHTTPClientTransport(url, { authProvider }),
  },
};

const call = (client) => client.callTool(JSON.parse(process.env.LOGIN_CALL));

// finish hands the code, with the issuer where the client checks it, to the
// transport that was sent to log in.
const finish = (transport, { kept }) =>
  transport.finishAuth(transport instanceof HTTPV1 ? kept.answer.get('code') : kept.answer);

for (const [name, { client: newClient, transport }] of Object.entries(generations)) {
  test(`${name} logs in at its first request`, { timeout: 60_000 }, async (t) => {
    const login = provider();
    const url = new URL(process.env.LOGIN_URL);
    const refused = transport(url, login);
    await assert.rejects(newClient().connect(refused));
    await finish(refused, login);
    assert.ok(login.kept.tokens?.access_token);

    const client = newClient();
    t.after(() => client.close());
    await client.connect(transport(url, login));
    const result = await call(client);
    assert.notEqual(result.isError, true, JSON.stringify(result));
  });

  test(`${name} looks around first and logs in for a call`, { timeout: 60_000 }, async (t) => {
    const login = provider();
    const client = newClient();
    const used = transport(new URL(process.env.DISCOVERY_URL), login);
    t.after(() => client.close());
    await client.connect(used);
    await client.listTools();
    assert.equal(login.kept.tokens, undefined);
    await assert.rejects(call(client));
    await finish(used, login);
    const result = await call(client);
    assert.notEqual(result.isError, true, JSON.stringify(result));
  });
}
