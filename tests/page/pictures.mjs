// Pictures in a conversation, before a model that names drawn shapes: it sees them, and so do people.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { answers, ask, check, finished, message, ready, serve, setting } from './rig.mjs';

const data = new URL('../../tests/data/vision/', import.meta.url).pathname;
const shapes = JSON.parse(readFileSync(data + 'shapes.json', 'utf8')).answers;
const png = (name) => readFileSync(data + 'images/' + name);
const kQuestion = 'What is in the picture?';

export async function pictures(program) {
  const server = await serve(program, data + 'text-shapes.gguf', '--mmproj', data + 'mmproj-shapes.gguf', '--kv-type', 'f32',
    '--chat-template', '{{ bos_token }}{{ messages[-1].content }}');
  const { url } = server;
  // By an event of the page, as a browser makes it of the clipboard or of a file that is dragged.
  const give = (page, event, name, bytes) => message(page).evaluate((el, [event, name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name, { type: 'image/png' }));
    el.dispatchEvent(event === 'paste' ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
      : new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
  }, [event, name, bytes.toString('base64')]);
  const attached = (page, name) => page.getByRole('button', { name: `Take ${name} away` }).waitFor();
  const words = async (page, shape, n) => {
    await finished(page, n);
    assert.equal((await answers(page).nth(n - 1).locator('.rich').textContent()).trim(), shape.answer.trim());
  };
  try {
    await check('a picture is attached, pasted and dropped: it is shown, and the model says what is in it', url, async (page) => {
      await ready(page);
      await setting(page, { Temperature: '0', 'Max tokens': '48' });
      const [one, two, three] = shapes;
      const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.getByRole('button', { name: 'Attach file' }).click()]);
      await chooser.setFiles({ name: one.image, mimeType: 'image/png', buffer: png(one.image) });
      await attached(page, one.image);
      const [request] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), ask(page, kQuestion)]);
      const [{ content }] = request.postDataJSON().messages;
      assert.deepEqual(content, [{ type: 'image_url', image_url: { url: `data:image/png;base64,${png(one.image).toString('base64')}` } }, { type: 'text', text: kQuestion }]);
      await words(page, one, 1);
      const shown = page.locator('.user img.picture').first();
      assert.equal(await shown.getAttribute('alt'), one.image);
      assert.equal(await shown.evaluate((img) => img.decode().then(() => img.naturalWidth)), one.width);
      for (const [event, shape] of [['paste', two], ['drop', three]]) {
        await page.getByRole('button', { name: 'New conversation' }).click();
        await page.getByText('Ask something.').waitFor();
        await give(page, event, shape.image, png(shape.image));
        await attached(page, shape.image);
        await ask(page, kQuestion);
        await words(page, shape, 1);
        assert.equal(await page.locator('.user img.picture').count(), 1, `the picture of ${event}`);
      }
      await page.reload();
      await page.locator('.user img.picture').waitFor(); // kept by the browser
    });

    await check('a large picture becomes smaller before it is sent', url, async (page) => {
      await ready(page);
      await setting(page, { 'Max tokens': '1' });
      const large = await page.evaluate(async () => {
        const canvas = document.createElement('canvas');
        canvas.width = 4000, canvas.height = 1000;
        canvas.getContext('2d').fillRect(0, 0, 2000, 1000);
        return canvas.toDataURL('image/png').split(',')[1];
      });
      await page.locator('input[type=file][multiple]').setInputFiles({ name: 'large.png', mimeType: 'image/png', buffer: Buffer.from(large, 'base64') });
      await attached(page, 'large.png');
      const [request] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), ask(page, kQuestion)]);
      assert.match(request.postDataJSON().messages[0].content[0].image_url.url, /^data:image\/jpeg;base64,/);
      await finished(page);
      const size = await page.locator('.user img.picture').evaluate((img) => img.decode().then(() => [img.naturalWidth, img.naturalHeight]));
      assert.deepEqual(size, [2048, 512]);
    });
  } finally {
    await server.end();
  }
}
