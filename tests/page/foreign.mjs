// Pages of other sites: a browser sends their requests to this machine, too, and none of them is answered.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { check, metrics, ready, serve } from './rig.mjs';

// A site of somebody else, under the names that rig.mjs maps to this machine.
async function site(run) {
  const server = createServer((_, answer) => answer.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>elsewhere</title><p>elsewhere'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try { await run(server.address().port); } finally { server.closeAllConnections(); server.close(); }
}

export async function foreign(program, { url, model }) {
  const port = new URL(url).port;
  const generate = JSON.stringify({ model, prompt: 'Once', options: { num_predict: 3 } });
  // What such a page can send without being asked for anything: any text, to any path.
  const attack = (page) => page.evaluate(async ([target, body]) => {
    const post = (path, type, mode) => fetch(target + path, { method: 'POST', mode, headers: { 'content-type': type }, body }).then((r) => `${path} ${r.type}`, () => `${path} refused`);
    const said = [];
    for (const [path, type] of [['/api/generate', 'text/plain'], ['/v1/backends/reload', 'text/plain'], ['/v1/completions', 'text/plain'], ['/api/generate', 'application/x-www-form-urlencoded']])
      said.push(await post(path, type, 'no-cors'));
    // A browser opens WebSockets to any host, and asks no one; the server sees the Origin.
    said.push(await new Promise((done) => {
      const socket = new WebSocket(target.replace('http', 'ws') + '/ws/generate');
      socket.onopen = () => done('/ws/generate open');
      socket.onerror = () => done('/ws/generate refused');
    }));
    said.push(await post('/v1/completions', 'application/json', 'cors'), await fetch(target + '/v1/models').then((r) => r.text(), () => 'unreadable'));
    return said;
  }, [url, generate]);

  await site(async (other) => {
    for (const name of ['evil.example', '127.0.0.1']) // another site, and another server of this machine
      await check(`a page of ${name} makes the server do nothing`, `http://${name}:${other}/`, async (page) => {
        const before = await metrics(url);
        const said = await attack(page);
        assert.deepEqual(said.slice(-3), ['/ws/generate refused', '/v1/completions refused', 'unreadable']);
        const after = await metrics(url);
        for (const number of ['gimbal_tokens_generated_total', 'gimbal_prompt_tokens_total', 'gimbal_worker_restarts_total'])
          assert.equal(after.get(number), before.get(number), number);
      }, { expected: /./ });

    await check('a form of another site is refused, a link to the page is followed', `http://evil.example:${other}/`, async (page) => {
      await page.setContent(`<form method=post enctype=text/plain action="${url}/api/generate"><input name='{"model":"${model}","prompt":"' value='"}'></form><a href="${url}/">chat</a>`);
      const [answer] = await Promise.all([page.waitForResponse((r) => r.url().endsWith('/api/generate')), page.evaluate(() => document.forms[0].submit())]);
      assert.equal(answer.status(), 403);
      await page.waitForURL('**/api/generate'); // the answer is the page now
      await page.goto(`http://evil.example:${other}/`);
      await page.setContent(`<a href="${url}/">chat</a>`);
      await page.getByText('chat').click();
      await ready(page);
    }, { expected: /./ });

    await check('a site that --cors-origin names is answered', `http://evil.example:${other}/`, async (page) => {
      const friendly = await serve(program, '--cors-origin', `http://evil.example:${other}`);
      try {
        const said = await page.evaluate(([target, body]) => fetch(`${target}/v1/completions`, { method: 'POST', headers: { 'content-type': 'application/json', 'x-stainless-os': 'x' }, body })
          .then(async (r) => [r.status, r.headers.get('x-request-id')]), [friendly.url, JSON.stringify({ model: friendly.model, prompt: 'Once', max_tokens: 2 })]);
        assert.equal(said[0], 200);
        assert.match(said[1], /^req_/);
        const text = await page.evaluate(([target, model]) => new Promise((done, failed) => {
          const socket = new WebSocket(target.replace('http', 'ws') + '/ws/generate');
          let all = '';
          socket.onopen = () => socket.send(JSON.stringify({ model, prompt: 'Once', max_tokens: 2 }));
          socket.onmessage = ({ data }) => data === '{"done":true}' ? done(all) : (all += data);
          socket.onerror = failed;
        }), [friendly.url, friendly.model]);
        assert.notEqual(text, '');
      } finally { await friendly.end(); }
    });
  });

  await check('a name that was made to lead here is not served', `http://rebind.example:${port}/`, async (page) => {
    assert.match(await page.innerText('body'), /allow-host/);
    const said = await page.evaluate(() => Promise.all(['/v1/models', '/api/tags', '/metrics'].map((path) => fetch(path).then(async (r) => [r.status, /stories|gimbal_/.test(await r.text())]))));
    assert.deepEqual(said, [[403, false], [403, false], [403, false]]);
  }, { expected: /403/ });
}
