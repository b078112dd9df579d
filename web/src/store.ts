// Conversations are kept in this browser (IndexedDB), each under its id. An unfinished answer is
// put into the session's storage at once, because the database would come too late.
import { createStore, del, set, values } from 'idb-keyval';
import type { Conversation, Turn } from './conversation';

const kPartial = 'gimbal.partial';
let store: ReturnType<typeof createStore> | undefined;
try { store = createStore('gimbal', 'conversations'); } catch { /* a browser that keeps nothing */ }

export let keeps = store !== undefined; // false: they live as long as the page

export async function loadAll(): Promise<Conversation[]> {
  let all: Conversation[] = [];
  try { if (store) all = await values<Conversation>(store); } catch { keeps = false; }
  const partial = takePartial();
  for (const c of all)
    for (const t of Object.values(c.turns)) {
      Object.assign(t, partial.find((p) => p.id === t.id));
      if (t.state === 'writing') t.state = 'cut';
    }
  return all.sort((a, b) => b.changed - a.changed);
}

export async function save(c: Conversation) { try { if (store) await set(c.id, c, store); } catch { keeps = false; } }
export async function forget(id: string) { try { if (store) await del(id, store); } catch { keeps = false; } }

export function keepPartial(turns: Turn[]) { try { sessionStorage.setItem(kPartial, JSON.stringify(turns)); } catch { /* full */ } }
function takePartial(): Turn[] {
  try {
    const text = sessionStorage.getItem(kPartial);
    sessionStorage.removeItem(kPartial);
    return text ? JSON.parse(text) : [];
  } catch { return []; }
}

// Said to the window when the user has chosen other colours.
export const kColoursChanged = 'gimbal-colours';

// Small things, such as the chosen model.
export const remember = (name: string, value: string) => { try { localStorage.setItem('gimbal.' + name, value); } catch { /* not kept */ } };
export const remembered = (name: string) => { try { return localStorage.getItem('gimbal.' + name) ?? ''; } catch { return ''; } };
