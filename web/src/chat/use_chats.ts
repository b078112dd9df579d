import { useLayoutEffect, useReducer } from 'preact/hooks';
import { chats } from './chats';

// Draws a component again whenever a conversation changes.
export function useChats() {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useLayoutEffect(() => chats.subscribe(() => again(0)), []);
}
