// GET /v1/explain/MODEL: the plan of a loaded model.
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { getJson } from '../api';
import type { Explained } from './plan';

// undefined: not known yet; no workers: the model is not loaded. `state`: changes when a model is loaded, or its workers are replaced.
export function useExplained(model: string, state: string): Explained[] | undefined {
  const [found, setFound] = useState<{ model: string; workers: Explained[] }>(), [again, setAgain] = useState(0);
  useEffect(() => {
    if (!model) return;
    let ended = false;
    getJson(`/v1/explain/${encodeURIComponent(model)}`).then((j) => { if (!ended) setFound({ model, workers: j.workers }); }, () => { if (!ended) setFound(undefined); });
    return () => { ended = true; };
  }, [model, state, again]);
  useLayoutEffect(() => {
    const f = () => setAgain((n) => n + 1);
    addEventListener('gimbal-key', f);
    return () => removeEventListener('gimbal-key', f);
  }, []);
  return found?.model === model ? found.workers : undefined; // never another one's under its name
}
