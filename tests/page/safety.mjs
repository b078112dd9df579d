// Answers that want to do harm, the headers that the page comes with, and what it may cost.
import assert from 'node:assert/strict';
import { check, load, message, ready } from './rig.mjs';

const kHostile = `
<script>window.harmed = 1</script><img src=x onerror="window.harmed = 1"><svg onload="window.harmed = 1"></svg>
<iframe src="javascript:window.harmed = 1"></iframe><style>body { display: none }</style><form action="http://127.0.0.1:1/"><button id=trap>send</button></form>
<a href="javascript:window.harmed = 1" id=link>html</a> <math><mtext></form><mglyph><style></math><img src onerror="window.harmed = 1">

[click](javascript:window.harmed=1) [data](data:text/html,<script>window.harmed=1</script>) [vb](vbscript:x) [blob](blob:x) [file](file:///etc/passwd)
[java&#115;cript](java&#115;cript:window.harmed=1) ![spy](http://127.0.0.1:1/spy.png) ![x](javascript:window.harmed=1) <javascript:window.harmed=1>

[good](https://example.org/) $x^2$ $\\href{javascript:window.harmed=1}{x}$ $\\def\\a{\\a\\a}\\a$ $\\rule{99999em}{99999em}$

\`\`\`html
<script>window.harmed = 1</script>
\`\`\`
`;

const kLarge = {
  'nested quotes': '> '.repeat(500_000) + 'x',
  'nested lists': Array.from({ length: 1000 }, (_, i) => ' '.repeat(2 * i) + '- x').join('\n'),
  'nested brackets': '['.repeat(1_000_000),
  'many stars': '*a **b '.repeat(150_000),
  'many open brackets': '[a](b '.repeat(170_000),
  'stars on lines': ('*a '.repeat(60) + '\n').repeat(5_000),
  'one long word': 'x'.repeat(1_000_000),
  'a huge table': '|' + ' a |'.repeat(200) + '\n|' + '-|'.repeat(200) + '\n' + ('|' + ' b |'.repeat(200) + '\n').repeat(1200),
  'many paragraphs': 'A *short* paragraph with `code`.\n\n'.repeat(30_000),
  'an open fence': '```js\n' + 'let x = "y";\n'.repeat(75_000),
  'formulas': '$\\frac{a}{b}$ '.repeat(70_000),
  'back ticks': '`a`` '.repeat(200_000),
  'underlines': '_a_b'.repeat(250_000),
  'entities and tags': '<a &lt; '.repeat(120_000),
};

export async function safety(url) {
  await check('a hostile answer is text: nothing runs, nothing is fetched, no link leads into the page', url, async (page) => {
    const asked = [];
    page.on('request', (r) => asked.push(r.url()));
    await load(page, { text: kHostile });
    await page.locator('.rich a[href="https://example.org/"]').waitFor();
    await page.waitForTimeout(300);
    assert.equal(await page.evaluate(() => window.harmed), undefined);
    assert.deepEqual(asked.filter((u) => !u.startsWith(url)), []);
    const links = await page.locator('.rich a').evaluateAll((all) => all.map((a) => [a.getAttribute('href'), a.rel, a.target]));
    for (const [href, rel, target] of links) {
      if (href === null) continue;
      assert.match(href, /^(https?:\/\/|mailto:)/);
      assert.match(rel, /noopener/);
      assert.equal(target, '_blank');
    }
    assert.equal(await page.locator('.rich script, .rich img, .rich iframe, .rich style, .rich form, .rich button#trap, .rich svg').count(), 0);
    assert.equal(await page.locator('.rich math').count() >= 1, true);
    assert.ok(await message(page).isVisible());
  });

  await check('1 MB of what is hard to format does not freeze the page', url, async (page) => {
    await ready(page);
    // The time that the page's own thread computed, whatever else this machine does.
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    const computed = async () => (await session.send('Performance.getMetrics')).metrics.find((m) => m.name === 'TaskDuration').value;
    for (const [name, text] of Object.entries(kLarge)) {
      const start = await computed();
      await load(page, { text: text.slice(0, 1_000_000) });
      await page.waitForFunction(() => document.querySelector('.assistant .rich')?.textContent.length > 500);
      await message(page).fill('still there');
      const took = await computed() - start;
      if (process.env.VERBOSE) console.log(`   ${name}: ${took.toFixed(2)} s`);
      assert.ok(took < 5, `${name} took ${took.toFixed(1)} s`); // what hangs takes minutes
      await message(page).fill('');
      await page.getByRole('button', { name: 'New conversation' }).click();
      await page.getByText('Ask something.').waitFor();
    }
  });

  await check('the browser keeps to the policy: nothing that comes into the page by itself runs or asks another server', url, async (page) => {
    await ready(page);
    const refused = await page.evaluate(async (other) => {
      const said = [];
      addEventListener('securitypolicyviolation', (e) => said.push(e.effectiveDirective));
      const tries = [
        () => { const s = document.createElement('script'); s.textContent = 'window.harmed = 1'; document.body.append(s); },
        () => { const d = document.createElement('div'); d.innerHTML = '<img src=x onerror="window.harmed = 1">'; document.body.append(d); },
        () => { document.body.setAttribute('onclick', 'window.harmed = 1'); document.body.click(); },
        () => { const s = document.createElement('style'); s.textContent = 'body { color: red }'; document.body.append(s); },
        () => { const i = document.createElement('img'); i.src = `${other}/spy.png`; document.body.append(i); },
        () => { const f = document.createElement('iframe'); f.src = other; document.body.append(f); },
        () => fetch(`${other}/v1/models`).catch(() => {}),
        () => new Function('window.harmed = 1')(),
      ];
      // From a timer: what the debugger calls may evaluate texts.
      for (const one of tries) await new Promise((then) => setTimeout(async () => { try { await one(); } catch { /* refused at once */ } then(); }));
      for (let i = 0; i < 500 && new Set(said).size < 5; i++) await new Promise((then) => setTimeout(then, 20)); // images and frames are refused later
      return [[...new Set(said)].sort(), window.harmed, getComputedStyle(document.body).color === 'rgb(255, 0, 0)'];
    }, 'http://127.0.0.2:1');
    assert.deepEqual(refused.slice(1), [undefined, false]);
    for (const directive of ['connect-src', 'frame-src', 'img-src', 'require-trusted-types-for', 'style-src-elem'])
      assert.ok(refused[0].includes(directive), `${directive} among ${refused[0]}`);
    // Nor may another page have it in a frame.
    const outer = await page.context().newPage();
    await outer.setContent(`<iframe src="${url}/"></iframe>`);
    await outer.waitForFunction(() => document.querySelector('iframe').contentDocument === null);
    assert.equal(await outer.frames()[1].evaluate(() => document.querySelector('#app')).catch(() => null), null);
  }, { expected: /./ });

  await check('headers, and an answer for a browser that has the page already', url, async () => {
    const get = (headers) => fetch(url + '/', { headers: { accept: 'text/html', ...headers } });
    const page = await get({ 'accept-encoding': 'gzip' });
    assert.equal(page.headers.get('content-encoding'), 'gzip');
    assert.match(page.headers.get('content-security-policy'), /^default-src 'none'; script-src 'sha256-[^;]*; style-src 'sha256-[^;]*;.*connect-src 'self'.*frame-ancestors 'none'/);
    assert.doesNotMatch(page.headers.get('content-security-policy'), /unsafe/);
    assert.equal(page.headers.get('x-content-type-options'), 'nosniff');
    assert.equal(page.headers.get('referrer-policy'), 'no-referrer');
    const bytes = Number(page.headers.get('content-length'));
    assert.ok(bytes > 10_000 && bytes < 300_000, `${bytes} bytes compressed`);
    assert.match(await page.text(), /^<!doctype html>/);
    const again = await get({ 'accept-encoding': 'gzip', 'if-none-match': page.headers.get('etag') });
    assert.equal(again.status, 304);
    assert.equal(await again.text(), '');
    const plain = await get({ 'accept-encoding': 'identity' });
    assert.match(plain.headers.get('content-type'), /^text\/plain/);
    assert.match(await plain.text(), /gimbal/);
  });

  await check('the first paint takes less than a second', url, async (page) => {
    const paint = () => page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime).then((h) => h.jsonValue());
    const all = [await paint()];
    for (let i = 0; i < 20 && Math.min(...all) >= 1000; i++) { await page.reload(); all.push(await paint()); } // a busy machine paints late, too
    console.log(`   first contentful paint: ${all.map((t) => Math.round(t) + ' ms').join(', ')}`);
    assert.ok(Math.min(...all) < 1000, `${all}`);
  });
}
