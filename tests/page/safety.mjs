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
    for (const [name, text] of Object.entries(kLarge)) {
      const start = performance.now();
      await load(page, { text: text.slice(0, 1_000_000) });
      await page.waitForFunction(() => document.querySelector('.assistant .rich')?.textContent.length > 500);
      await message(page).fill('still there');
      const took = performance.now() - start;
      if (process.env.VERBOSE) console.log(`   ${name}: ${Math.round(took)} ms`);
      assert.ok(took < 5000, `${name} took ${Math.round(took)} ms`); // what hangs takes minutes
      await message(page).fill('');
      await page.getByRole('button', { name: 'New conversation' }).click();
      await page.getByText('Ask something.').waitFor();
    }
  });

  await check('headers, and an answer for whoever knows the page already', url, async () => {
    const get = (headers) => fetch(url + '/', { headers });
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
    for (let i = 0; i < 2; i++) { await page.reload(); all.push(await paint()); }
    console.log(`   first contentful paint: ${all.map((t) => Math.round(t) + ' ms').join(', ')}`);
    assert.ok(Math.min(...all) < 1000, `${all}`);
  });
}
