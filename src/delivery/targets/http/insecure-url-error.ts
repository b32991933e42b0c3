/** The endpoint is reached by http, and the installation takes only https. */
export class InsecureUrlError extends Error {
  constructor() {
    super('the URL of the endpoint begins with http://, which this installation does not allow');
    this.name = 'InsecureUrlError';
  }
}
