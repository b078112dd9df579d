import { render } from 'preact';
import { App } from './app';
import './style.css';

const at = document.getElementById('app')!;
at.replaceChildren();
render(<App />, at);
