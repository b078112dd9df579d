// The page: a bar with the two views, and whichever is chosen by the address behind "#".
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { onKeyNeeded, setKey } from './api';
import { Chat } from './chat/chat';
import { chats } from './chat/chats';
import { KeyDialog } from './key';
import { kColoursChanged, remember, remembered } from './store';
import { Where } from './where/where';

const kThemes = ['auto', 'light', 'dark'];

function Theme() {
  const [theme, setTheme] = useState(remembered('theme') || 'auto');
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    remember('theme', theme);
    dispatchEvent(new Event(kColoursChanged));
  }, [theme]);
  return <button type="button" class="small" onClick={() => setTheme(kThemes[(kThemes.indexOf(theme) + 1) % 3])}>Theme: {theme}</button>;
}

// An address is typed by anybody: what is not well written names nothing.
function receiptIn(place: string): string {
  try { return decodeURIComponent(place.slice('#/where/'.length)); } catch { return ''; }
}

export function App() {
  const [place, setPlace] = useState(location.hash), [key, setKeyNeeded] = useState<'' | 'needed' | 'wrong'>('');
  const [later, setLater] = useState(false); // the key was asked for, and not given
  // As the page is drawn, not a moment behind it: an address may change in between. So it is with all that listen.
  useLayoutEffect(() => {
    const moved = () => setPlace(location.hash);
    addEventListener('hashchange', moved);
    onKeyNeeded((wrong) => setKeyNeeded(wrong ? 'wrong' : 'needed'));
    void chats.start();
    return () => removeEventListener('hashchange', moved);
  }, []);
  const where = place.startsWith('#/where');
  useEffect(() => { document.title = where ? 'What runs where – gimbal' : 'Chat – gimbal'; }, [where]);
  const given = (text: string) => {
    setLater(!text);
    if (!text) return;
    setKeyNeeded('');
    setKey(text);
    void chats.loadModels();
    dispatchEvent(new Event('gimbal-key'));
  };
  return (
    <>
      <header class="bar">
        <h1 class="mark"><svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true"><circle cx="16" cy="16" r="13" /><ellipse cx="16" cy="16" rx="13" ry="5" transform="rotate(-28 16 16)" /><circle class="heart" cx="16" cy="16" r="2.6" /></svg>gimbal</h1>
        <nav aria-label="Views">
          <a href="#/chat" aria-current={where ? undefined : 'page'}>Chat</a>
          <a href="#/where" aria-current={where ? 'page' : undefined}>What runs where</a>
        </nav>
        {key && later && <button type="button" class="small" onClick={() => setLater(false)}>Give an API key</button>}
        <Theme />
      </header>
      {where ? <Where receipt={receiptIn(place)} /> : <Chat />}
      {key && !later && <KeyDialog wrong={key === 'wrong'} given={given} />}
    </>
  );
}
