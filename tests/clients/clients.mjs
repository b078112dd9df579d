// What the official clients get from gimbal. Each check is one call as their users write it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embed, generateText, streamText } from 'ai';
import { Ollama } from 'ollama';
import OpenAI from 'openai';

async function serve(...options) {
  const server = spawn(process.argv[2], ['serve', ...options, '--port', '0', '--json'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(server.stdout, 'data');
  return { server, ...JSON.parse(line) };
}
const { server, url, models } = await serve('default');
const model = models[0];
const messages = [{ role: 'user', content: 'Once upon a time' }];
const schema = { type: 'object', properties: { city: { type: 'string' } } };

let failed = 0;
async function check(name, run) {
  try {
    await run();
    console.log('ok', name);
  } catch (error) {
    failed++;
    console.log('FAILED', name, error);
  }
}
async function listed(pages) {
  const all = [];
  for await (const page of pages) all.push(page.id);
  return all;
}
const refused = (status, field, value) => (error) => {
  assert.equal(error.status ?? error.status_code, status);
  if (field) assert.equal(error[field], value);
  return true;
};

const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0 });
const chat = (more) => openai.chat.completions.create({ model, messages, max_tokens: 8, ...more });
await check('openai: models', async () => assert.deepEqual(await listed(openai.models.list()), models));
await check('openai: chat', async () => {
  const answer = await chat();
  assert.equal(answer.choices[0].finish_reason, 'length');
  assert.equal(answer.usage.completion_tokens, 8);
});
await check('openai: a stream says the same', async () => {
  const whole = await chat({ seed: 7 });
  let text = '', usage;
  for await (const chunk of await chat({ seed: 7, stream: true, stream_options: { include_usage: true } })) {
    text += chunk.choices[0]?.delta?.content ?? '';
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].message.content);
  assert.deepEqual(usage.completion_tokens, 8);
});
await check('openai: the helper for streams', async () => {
  const answer = await openai.chat.completions.stream({ model, messages, max_tokens: 8 }).finalChatCompletion();
  assert.equal(answer.choices[0].message.role, 'assistant');
});
await check('openai: tools are taken', async () =>
  assert.equal((await chat({ tools: [{ type: 'function', function: { name: 'weather', parameters: schema } }] })).object, 'chat.completion'));
await check('openai: an aborted stream', async () => {
  const controller = new AbortController();
  const stream = await openai.chat.completions.create({ model, messages, stream: true }, { signal: controller.signal });
  for await (const _ of stream) controller.abort();
  assert.ok(controller.signal.aborted);
});
await check('openai: completions', async () =>
  assert.equal((await openai.completions.create({ model, prompt: 'Once', max_tokens: 5 })).usage.completion_tokens, 5));
await check('openai: embeddings', async () => {
  const { data } = await openai.embeddings.create({ model, input: ['a', 'b'] });
  assert.equal(data.length, 2);
  assert.ok(Math.abs(Math.hypot(...data[0].embedding) - 1) < 1e-3);
});
await check('openai: responses', async () => {
  assert.equal((await openai.responses.create({ model, input: 'Once', max_output_tokens: 8 })).status, 'incomplete');
  const final = await openai.responses.stream({ model, input: 'Once', max_output_tokens: 8 }).finalResponse();
  assert.ok(final.output_text.length > 0);
});
await check('openai: errors', async () => {
  assert.equal((await chat({ model: 'none' })).model, model); // the only one
  await assert.rejects(chat({ temperature: 9 }), refused(400, 'param', 'temperature'));
});
const data = process.argv[3];
const sound = () => createReadStream(`${data}/images/short.wav`);
await check('openai: transcriptions need a model that hears', async () =>
  assert.rejects(openai.audio.transcriptions.create({ model, file: sound() }), refused(400, 'param', 'model')));
await check('openai: transcriptions', async () => {
  const hearing = await serve(`${data}/text-llama.gguf`, '--mmproj', `${data}/mmproj-ultravox.gguf`, '--ctx', '320');
  const { audio } = new OpenAI({ baseURL: `${hearing.url}/v1`, apiKey: 'any', maxRetries: 0 });
  const asked = { model: hearing.models[0], language: 'en', temperature: 0 };
  const { text } = await audio.transcriptions.create({ ...asked, file: sound() });
  assert.equal(await audio.transcriptions.create({ ...asked, file: sound(), response_format: 'text' }), text + '\n');
  let done;
  for await (const event of await audio.transcriptions.create({ ...asked, file: sound(), stream: true })) done = event;
  assert.deepEqual([done.type, done.text], ['transcript.text.done', text]);
  hearing.server.kill('SIGTERM');
});

const anthropic = new Anthropic({ baseURL: url, apiKey: 'any', maxRetries: 0 });
const ask = { model, max_tokens: 8, messages };
await check('anthropic: a message', async () => {
  const message = await anthropic.messages.create(ask);
  assert.equal(message.stop_reason, 'max_tokens');
  assert.equal(message.usage.output_tokens, 8);
  assert.equal((await anthropic.messages.countTokens({ model, messages })).input_tokens, message.usage.input_tokens);
});
await check('anthropic: a stream', async () =>
  assert.equal((await anthropic.messages.stream(ask).finalMessage()).content[0].type, 'text'));
await check('anthropic: tools are taken', async () =>
  assert.equal((await anthropic.messages.create({ ...ask, tools: [{ name: 'weather', input_schema: schema }] })).type, 'message'));
await check('anthropic: errors', async () =>
  assert.rejects(anthropic.messages.create({ ...ask, temperature: 9 }), refused(400)));

const ollama = new Ollama({ host: url });
const options = { num_predict: 8 };
await check('ollama: models', async () => {
  assert.equal((await ollama.list()).models[0].digest.length, 64);
  assert.deepEqual((await ollama.show({ model })).capabilities, ['completion']);
  assert.equal((await ollama.ps()).models.length, 1);
});
await check('ollama: chat', async () => {
  assert.equal((await ollama.chat({ model, messages, options })).eval_count, 8);
  let last;
  for await (const part of await ollama.chat({ model, messages, options, stream: true })) last = part;
  assert.equal(last.done_reason, 'length');
});
await check('ollama: generate', async () =>
  assert.equal((await ollama.generate({ model, prompt: 'Once', options })).eval_count, 8));
await check('ollama: embed', async () =>
  assert.equal((await ollama.embed({ model, input: ['a', 'b'] })).embeddings.length, 2));
await check('ollama: errors', async () => assert.rejects(ollama.chat({ model: 'none', messages }), refused(404)));

const provider = createOpenAICompatible({ name: 'gimbal', baseURL: `${url}/v1`, apiKey: 'any', includeUsage: true });
await check('ai: texts', async () => {
  const chatModel = provider.chatModel(model);
  assert.equal((await generateText({ model: chatModel, prompt: 'Once', maxOutputTokens: 8 })).finishReason, 'length');
  const stream = streamText({ model: chatModel, prompt: 'Once', maxOutputTokens: 8 });
  for await (const _ of stream.textStream);
  assert.equal((await stream.usage).outputTokens, 8);
  await generateText({ model: provider.completionModel(model), prompt: 'Once', maxOutputTokens: 8 });
});
await check('ai: embeddings', async () =>
  assert.ok((await embed({ model: provider.textEmbeddingModel(model), value: 'Once' })).embedding.length > 0));

server.kill('SIGTERM');
const [code] = await once(server, 'exit');
await check('the server ends in order', () => assert.equal(code, 0));
console.log(failed ? `${failed} checks failed` : 'all checks passed');
process.exit(failed ? 1 : 0);
