/** Where the installation answers below its host, such as `/posthorn`; empty: at the root. The server writes it into the page. */
export const basePath = metaContent('posthorn-base') ?? '';
export const version = metaContent('posthorn-version') ?? '';
export const installationTheme = metaContent('posthorn-theme') ?? 'auto';
/** JSON. */
export const installationViews = metaContent('posthorn-views') ?? '[]';

function metaContent(name: string): string | null {
  const content = document.querySelector(`meta[name="${name}"]`)?.getAttribute('content');
  return content === undefined || content === null || content === '' ? null : content;
}
