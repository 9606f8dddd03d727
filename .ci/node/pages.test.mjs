// The pages of a server, driven in Chromium as a person would: at the width of a
// desktop and of a phone, in light and dark, with scripts and without.
//
//   PAGES_URL    URL of the running server, as it knows itself, without /mcp
//   PAGES_TOKEN  a token with the claim allow: gen-token
//   CHROMIUM     path of the browser
//   PAGES_SHOTS  directory for screenshots; none are kept without it
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';

const { PAGES_URL: url, PAGES_TOKEN: operator, CHROMIUM: executablePath, PAGES_SHOTS: shots } = process.env;

const views = [
  { name: 'desktop light', viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
  { name: 'desktop dark without scripts', viewport: { width: 1280, height: 900 }, colorScheme: 'dark', javaScriptEnabled: false },
  { name: 'phone light without scripts', viewport: { width: 360, height: 740 }, colorScheme: 'light', isMobile: true, hasTouch: true, javaScriptEnabled: false },
  { name: 'phone dark', viewport: { width: 390, height: 844 }, colorScheme: 'dark', isMobile: true, hasTouch: true },
];

let browser;
before(async () => {
  // The sandbox needs privileges that a container has not; only our own pages are opened.
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
});
after(() => browser.close());

// open starts a browser of its own for a view. What it complains about, such as
// a style that the policy forbids, fails the test.
async function open(t, { name, ...view }, options = {}) {
  const context = await browser.newContext({ ...view, ...options });
  t.after(() => context.close());
  const page = await context.newPage();
  const complaints = [];
  page.on('console', (m) => m.type() === 'error' && complaints.push(m.text()));
  page.on('pageerror', (e) => complaints.push(String(e)));
  const shot = async (what) => {
    await fits(page);
    if (shots) await page.screenshot({ path: `${shots}/${what}-${name.replaceAll(' ', '-')}.png`, fullPage: true });
  };
  return { page, complaints, shot };
}

// fits checks that nothing sticks out of the page and all can be hit by a thumb.
async function fits(page) {
  const faults = await page.evaluate(() => {
    const shown = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility());
    const text = (e) => e.outerHTML.slice(0, 80);
    return [
      ...shown('body *').filter((e) => e.getBoundingClientRect().right > innerWidth || e.getBoundingClientRect().left < 0).map((e) => `sticks out: ${text(e)}`),
      ...shown('button, select, input:not([type=checkbox]), .check').filter((e) => e.getBoundingClientRect().height < 40).map((e) => `too low: ${text(e)}`),
    ];
  });
  assert.deepEqual(faults, []);
}

// named checks that every control has a name for those who do not see it.
async function named(page) {
  const nameless = await page.evaluate(() => [...document.querySelectorAll('input:not([type=hidden]), textarea, select')]
    .filter((e) => !e.ariaLabel && ![...e.labels].some((l) => l.textContent.trim())).map((e) => e.outerHTML));
  assert.deepEqual(nameless, []);
}

const form = (values) => ({ method: 'POST', body: new URLSearchParams(values) });

async function valid(token) {
  const answer = await fetch(`${url}/ct`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ t: token }) });
  return answer.json();
}

for (const view of views) {
  test(`make and check tokens: ${view.name}`, async (t) => {
    const { page, complaints, shot } = await open(t, view, { httpCredentials: { username: 'any', password: operator } });
    await page.goto(`${url}/admin`);
    await named(page);
    await shot('admin');

    await page.getByLabel('User').fill('ann');
    await page.getByLabel('How long it is valid').fill('2');
    await page.getByLabel('Unit of its life').selectOption('hours');
    await page.getByText('More', { exact: true }).click();
    await page.getByLabel('Further claims').fill('team=research\nlevel=3');
    await page.getByRole('button', { name: 'Make token' }).click();
    const token = (await page.getByLabel('Token', { exact: true }).first().inputValue()).trim();
    await shot('admin-made');
    const checked = await valid(token);
    assert.equal(checked.valid, true);
    assert.equal(checked.subject, 'ann');
    assert.ok(!page.url().includes(token));

    await page.getByLabel('Token', { exact: true }).last().fill(token);
    await page.getByRole('button', { name: 'Check token' }).click();
    await page.getByText('Valid.').waitFor();
    await page.getByText('research').waitFor();
    await shot('admin-checked');

    await page.getByLabel('Token', { exact: true }).last().fill(`${token.slice(0, -6)}AAAAAA`);
    await page.getByRole('button', { name: 'Check token' }).click();
    await page.getByText('Not accepted.').waitFor();
    await shot('admin-refused');

    await page.getByLabel('User').fill('ann');
    await page.getByLabel('How long it is valid').fill('2');
    await page.getByLabel('Unit of its life').selectOption('years');
    await page.getByRole('button', { name: 'Make token' }).click();
    await page.getByText('No token was made.').waitFor();
    await shot('admin-fault');
    // The browser itself reports the status of the last answer.
    assert.deepEqual(complaints.filter((text) => !text.includes('status of 400')), []);
  });

  test(`nobody without a login: ${view.name}`, async (t) => {
    const { page, shot } = await open(t, view, { httpCredentials: { username: 'any', password: 'wrong' } });
    const answer = await page.goto(`${url}/admin`);
    assert.equal(answer.status(), 401);
    assert.equal(await page.locator('form').count(), 0);
    await shot('admin-login');
  });

  for (const decision of ['Allow', 'Refuse']) {
    test(`consent, ${decision}: ${view.name}`, async (t) => {
      const { page, complaints, shot } = await open(t, view);
      // The client waits on a free port of this machine.
      let arrived;
      const arrival = new Promise((resolve) => (arrived = resolve));
      const client = createServer((request, response) => {
        if (request.url.startsWith('/callback')) arrived(new URL(request.url, 'http://127.0.0.1').searchParams);
        response.end('done');
      });
      await new Promise((resolve) => client.listen(0, '127.0.0.1', resolve));
      t.after(() => client.close());
      const redirect = `http://127.0.0.1:${client.address().port}/callback`;

      const metadata = await (await fetch(`${url}/.well-known/oauth-authorization-server`)).json();
      const verifier = randomBytes(32).toString('base64url');
      const request = new URLSearchParams({
        response_type: 'code', client_id: 'famcp-dev', redirect_uri: redirect, state: 'state of <the> client',
        code_challenge: createHash('sha256').update(verifier).digest('base64url'), code_challenge_method: 'S256', resource: `${url}/mcp`,
      });
      await page.goto(`${metadata.authorization_endpoint}?${request}`);
      await named(page);
      await shot('consent');
      await page.getByLabel('Act as').fill('ann');
      await page.getByRole('button', { name: decision }).click();

      const answer = await arrival;
      assert.equal(answer.get('state'), 'state of <the> client');
      assert.equal(answer.get('iss'), metadata.issuer);
      assert.deepEqual(complaints, []);
      if (decision === 'Refuse') {
        assert.equal(answer.get('error'), 'access_denied');
        return;
      }
      const granted = await (await fetch(metadata.token_endpoint, form({
        grant_type: 'authorization_code', code: answer.get('code'), code_verifier: verifier, redirect_uri: redirect, client_id: 'famcp-dev',
      }))).json();
      assert.equal((await valid(granted.access_token)).subject, 'ann');
    });
  }

  test(`a redirect that is not the client's: ${view.name}`, async (t) => {
    const { page, shot } = await open(t, view);
    const answer = await page.goto(`${url}/oauth/authorize?response_type=code&client_id=famcp-dev&redirect_uri=https://evil.test/`);
    assert.equal(answer.status(), 400);
    assert.ok(page.url().startsWith(url));
    await shot('consent-refused');
  });
}
