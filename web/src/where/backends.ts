// GET /v1/backends: the devices of the server's machine, and the reasons of backends without one.
import { useEffect, useState } from 'preact/hooks';
import { getJson } from '../api';

export interface DeviceFacts { id: string; name: string; memory_total: number | null; memory_free: number | null; same_card_as: string | null; features: string; threads: number; kernels: number; software: boolean }
export interface Refusal { index: number; code: string; reason: string; remedy: string }
export interface Backend { backend: string; name: string; present: boolean; available: boolean; code: string; reason: string; remedy: string; devices: DeviceFacts[]; refused: Refusal[] }
export interface Found {
  backends: Backend[];
  automatic: { device: string; reason: string; rejected: { what: string; code: string; reason: string; remedy: string }[] } | null;
}

// The server probes its devices for each answer: asked once, and again only by `look`.
export function useBackends() {
  const [found, setFound] = useState<Found>(), [problem, setProblem] = useState(''), [busy, setBusy] = useState(false);
  const look = async () => {
    setBusy(true);
    try { setFound(await getJson('/v1/backends')); setProblem(''); } catch (e) { setProblem((e as Error).message); }
    setBusy(false);
  };
  useEffect(() => { void look(); }, []);
  return { found, problem, busy, look };
}
