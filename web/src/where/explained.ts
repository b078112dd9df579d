// GET /v1/explain/MODEL: the plan of a loaded model.
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { getJson } from '../api';
import type { Explained } from './plan';

// undefined: not known yet; no workers: the model is not loaded. `state`: changes when a model is loaded, or its workers are replaced.
// `loaded`: the time of a look at a server that has the model loaded. Then an answer without workers is out of date.
export function useExplained(model: string, state: string, loaded = 0): Explained[] | undefined {
  const [found, setFound] = useState<{ model: string; workers: Explained[] }>(), [again, setAgain] = useState(0);
  const late = found?.model === model && found.workers.length === 0 ? loaded : 0;
  useEffect(() => {
    if (!model) return;
    let ended = false;
    getJson(`/v1/explain/${encodeURIComponent(model)}`).then((j) => { if (!ended) setFound({ model, workers: j.workers }); }, () => { if (!ended) setFound(undefined); });
    return () => { ended = true; };
  }, [model, state, again, late]);
  useLayoutEffect(() => {
    const f = () => setAgain((n) => n + 1);
    addEventListener('gimbal-key', f);
    return () => removeEventListener('gimbal-key', f);
  }, []);
  return found?.model === model ? found.workers : undefined; // never another one's under its name
}
