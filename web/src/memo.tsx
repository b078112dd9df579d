// A component that is drawn again only when one of its properties is another one.
import { Component, type ComponentChildren, type FunctionComponent, h } from 'preact';

export function memo<P extends object>(of: FunctionComponent<P>) {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P) {
      const now = this.props as Record<string, unknown>, then = next as Record<string, unknown>;
      return Object.keys({ ...now, ...then }).some((name) => name !== 'children' && now[name] !== then[name]);
    }
    render(): ComponentChildren { return h(of, this.props as P & { children?: ComponentChildren }); }
  };
}
