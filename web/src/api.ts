// The server's APIs, as this page uses them.
const kKey = 'gimbal.key';
let key = (() => { try { return sessionStorage.getItem(kKey) ?? ''; } catch { return ''; } })();

export class ApiError extends Error {
  constructor(message: string, readonly status: number) { super(message); }
}

export function setKey(text: string) {
  key = text;
  try { sessionStorage.setItem(kKey, text); } catch { /* asked again after a reload */ }
}

let needsKey: (wrong: boolean) => void = () => {};
export const onKeyNeeded = (then: typeof needsKey) => { needsKey = then; };

async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (key) headers.set('Authorization', `Bearer ${key}`);
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers, cache: 'no-store', credentials: 'omit' });
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError') throw e;
    throw new ApiError('The server cannot be reached.', 0);
  }
  if (response.status === 401) needsKey(key !== '');
  if (!response.ok) {
    const said = await response.json().catch(() => null);
    throw new ApiError(said?.error?.message ?? `The server answered ${response.status}.`, response.status);
  }
  return response;
}

export const getJson = async (path: string) => (await ask(path)).json();
export const getText = async (path: string) => (await ask(path)).text();
export const models = async (): Promise<string[]> => (await getJson('/v1/models')).data.map((m: { id: string }) => m.id);

export interface Event {
  id?: string;
  choices?: { delta?: { content?: string; reasoning_content?: string; tool_calls?: { index: number; id?: string; function?: { name?: string; arguments?: string } }[] }; finish_reason?: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number } | null;
  error?: { message: string };
}

// Calls `on` for every event of the stream. Ends when the server has said the last one; throws where it did not.
export async function chat(request: object, signal: AbortSignal, on: (e: Event) => void): Promise<void> {
  const response = await ask('/v1/chat/completions', {
    method: 'POST', signal, headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true } }),
  });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read().catch((e) => {
      if (signal.aborted) throw e;
      throw new ApiError('The connection to the server was lost.', 0);
    });
    if (done) throw new ApiError('The server ended the answer in the middle.', 0);
    const lines = (rest + value).split('\n');
    rest = lines.pop()!;
    for (const line of lines) {
      if (!line.startsWith('data: ')) continue;
      if (line === 'data: [DONE]') return;
      const event: Event = JSON.parse(line.slice(6));
      if (event.error) throw new ApiError(event.error.message, 200);
      on(event);
    }
  }
}
